// Sends calls with the SDKs of OpenAI and Anthropic, with their default retries:
//
//	node sdks.mjs URL CLIENT WORKERS CALLS
//
// All workers have one key. It prints how many calls failed.

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const [baseURL, name, workers, calls] = process.argv.slice(2);

const clients = {
	openai() {
		const client = new OpenAI({baseURL, apiKey: 'acme'});
		return () => client.models.list();
	},
	anthropic() {
		const client = new Anthropic({baseURL, apiKey: 'acme'});
		return () => client.models.list();
	},
};

let failed = 0;

await Promise.all(Array.from({length: Number(workers)}, async () => {
	const call = clients[name]();
	for (let i = 0; i < Number(calls); i++) {
		try {
			await call();
		} catch (error) {
			if (error.status !== 429) throw error;
			failed++;
		}
	}
}));
console.log(failed);
