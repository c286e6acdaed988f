// Calls a tool with the client of MCP's TypeScript SDK:
//
//	node mcp.mjs URL
//
// It prints the message of the error, as an agent reads it.

import {Client, StreamableHTTPClientTransport} from '@modelcontextprotocol/client';

const client = new Client({name: 'agent', version: '1'}, {versionNegotiation: {mode: 'auto'}});
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
await client.callTool({name: 'echo', arguments: {}});
try {
	await client.callTool({name: 'echo', arguments: {}});
} catch (error) {
	console.log(error.message);
}
process.exit(); // the session may have a stream open
