// Servers of npm, each at a port of its own: 60 requests in 6 s for each value of the header X-Run. One line for each server
// says its name and its port. The servers end when standard input does.

import express from 'express';
import { rateLimit } from 'express-rate-limit';
import Fastify from 'fastify';
import fastifyRateLimit from '@fastify/rate-limit';
import Koa from 'koa';
import koaRateLimit from 'koa-ratelimit';
import { RateLimiterMemory } from 'rate-limiter-flexible';

const quota = 60;
const windowMs = 6000;
const run = (req) => req.headers['x-run'] ?? '';

function listen(name, server) {
  const listening = server.listen(0, '127.0.0.1', () => {
    console.log(`${name}\t${listening.address().port}`);
  });
}

function expressServer(name, ...middleware) {
  const app = express();
  app.use(...middleware);
  app.get('/', (_, res) => res.end());
  listen(name, app);
}

for (const version of ['draft-6', 'draft-7', 'draft-8']) {
  expressServer(`express-rate-limit, ${version}*`, rateLimit({
    windowMs, limit: quota, keyGenerator: run, standardHeaders: version, legacyHeaders: false,
  }));
}
expressServer('express-rate-limit, legacy*', rateLimit({
  windowMs, limit: quota, keyGenerator: run, standardHeaders: false, legacyHeaders: true,
}));

// As the documentation of rate-limiter-flexible shows it.
const flexible = new RateLimiterMemory({ points: quota, duration: windowMs / 1000 });
expressServer('rate-limiter-flexible', async (req, res, next) => {
  try {
    await flexible.consume(run(req));
    next();
  } catch (rejected) {
    res.set({
      'Retry-After': rejected.msBeforeNext / 1000,
      'X-RateLimit-Limit': quota,
      'X-RateLimit-Remaining': rejected.remainingPoints,
      'X-RateLimit-Reset': Math.ceil((Date.now() + rejected.msBeforeNext) / 1000),
    });
    res.status(429).end();
  }
});

const koa = new Koa();
koa.use(koaRateLimit({ driver: 'memory', db: new Map(), duration: windowMs, max: quota, id: (ctx) => run(ctx.req) }));
koa.use((ctx) => { ctx.body = ''; });
listen('koa-ratelimit*', koa);

const fastify = Fastify();
await fastify.register(fastifyRateLimit, { max: quota, timeWindow: windowMs, keyGenerator: run });
fastify.get('/', (_, reply) => reply.send(''));
await fastify.listen({ port: 0, host: '127.0.0.1' });
console.log(`@fastify/rate-limit*\t${fastify.server.address().port}`);

console.log('all');
process.stdin.resume();
process.stdin.on('end', () => process.exit());
