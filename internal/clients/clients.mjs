// Prints how JavaScript's clients understand responses, one line of JSON per client and URL:
//
//	node clients.mjs URL...
//
// A client that retries calls setTimeout with its wait. Here setTimeout records the wait and fires at once, so that no
// test has to wait, even on a slow machine.

import {Octokit} from '@octokit/core';
import {retry} from '@octokit/plugin-retry';
import {throttling} from '@octokit/plugin-throttling';
import axios from 'axios';
import axiosRetry, {exponentialDelay} from 'axios-retry';
import got from 'got';
import ky from 'ky';
import pRetry from 'p-retry';
import {parseRateLimit} from 'ratelimit-header-parser';

const retries = 2;

function withRetry(options) {
	const client = axios.create();
	axiosRetry(client, {retries, ...options});
	return url => client.get(url);
}

// The throttling plugin must treat each URL as a client of its own.
function octokit(plugin, options) {
	const Client = Octokit.plugin(plugin);
	return url => new Client({...options(url), log: {debug() {}, info() {}, warn() {}, error() {}}}).request(`GET ${url}`);
}

const again = (wait, options, client, count) => count < retries;

const clients = {
	'axios-retry': withRetry({}),
	'axios-retry, exponentialDelay': withRetry({retryDelay: exponentialDelay}),
	'got': url => got(url, {retry: {limit: retries}}),
	'ky': url => ky(url, {retry: {limit: retries}, timeout: false}),
	'octokit plugin-retry': octokit(retry, () => ({retry: {retries}})),
	'octokit plugin-throttling': octokit(throttling, url => ({throttle: {id: url, onRateLimit: again, onSecondaryRateLimit: again}})),
	'p-retry': url => pRetry(async () => {
		const response = await fetch(url);
		if (!response.ok) throw new Error(response.statusText);
	}, {retries}),
	'ratelimit-header-parser': async url => parseRateLimit(await fetch(url)),
};

const fire = globalThis.setTimeout;
let waits;
globalThis.setTimeout = (callback, wait = 0, ...rest) => {
	waits.push(wait);
	return fire(callback, 0, ...rest);
};

for (const url of process.argv.slice(2)) {
	for (const [name, call] of Object.entries(clients)) {
		waits = [];
		let failure;
		let read;
		try {
			const {limit, remaining, reset} = await call(url) ?? {};
			read = {limit, remaining, reset: reset && Math.round((reset - Date.now()) / 1000)};
		} catch (error) {
			if (error.status !== 429 && !/429|Too Many Requests/.test(error.message)) failure = String(error);
		}
		console.log(JSON.stringify({name, url, waits: waits.map(Math.round), read, failure}));
	}
}
