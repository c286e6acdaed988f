// Sends one request with each of JavaScript's clients, with real timers. Each client has a path of its own:
//
//	node comeback.mjs URL
//
// It prints the clients whose request failed. Their own timers are short, so that only Retry-After explains a long wait.

import axios from 'axios';
import axiosRetry from 'axios-retry';
import got from 'got';
import ky from 'ky';
import pRetry from 'p-retry';

const retries = 5;
const [base] = process.argv.slice(2);

// p-retry does not know HTTP, so its caller waits.
class Denied extends Error {
	constructor(response) {
		super(response.statusText);
		this.wait = 1000 * Number(response.headers.get('retry-after'));
	}
}

const wait = ms => new Promise(resolve => setTimeout(resolve, ms));

const clients = {
	'got': url => got(url, {retry: {limit: retries, backoffLimit: 10}}),
	'ky': url => ky(url, {retry: {limit: retries, delay: () => 10}}),
	'axios-retry'(url) {
		const client = axios.create();
		axiosRetry(client, {retries});
		return client.get(url);
	},
	'p-retry': url => pRetry(async () => {
		const response = await fetch(url);
		if (!response.ok) throw new Denied(response);
	}, {retries, minTimeout: 10, maxTimeout: 10, onFailedAttempt: ({error}) => wait(error.wait)}),
};

await Promise.all(Object.entries(clients).map(async ([name, call]) => {
	try {
		await call(`${base}/${name}/v1/orders/1`);
	} catch (error) {
		console.log(`${name}: ${error}`);
	}
}));
