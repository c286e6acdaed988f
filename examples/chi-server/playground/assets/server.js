// The server of the page. The site, which has none, has a module of its own in the place of this one.

/**
 * A request without cookies, because this server has none. Browsers open six connections for such requests, and six
 * others for events and pages. So tabs that listen do not delay requests.
 */
export const ask = (path, options) => fetch(path, { cache: "no-store", credentials: "omit", ...options });

/** The levels of a sandbox, as events. */
export const listen = (path) => new EventSource(`${path}/events`);

/** Sentences about the one who decides. */
export const words = {
  decides: "The server",
  silent: "the server does not answer",
  sandbox: "A middleware of your own on this server. You set its limit.",
  outage: "Servers that are started with -redis and -demo-outage let you cut the connection yourself, above.",
};
