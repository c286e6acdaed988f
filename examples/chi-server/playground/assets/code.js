// The limit of the form as a program in Go, and its requests as a command.

import { $, say } from "./dom.js";

const units = { ms: "time.Millisecond", s: "time.Second", m: "time.Minute", h: "time.Hour" };

/** A limit's text, such as token-bucket 10/10s burst 5, as an expression of Go. */
export function expression(limit) {
  const [, algorithm, requests, n, unit, burst] = /^(\S+) (\d+)\/(\d+)([a-z]+)(?: burst (\d+))?$/.exec(limit);
  const name = algorithm.replace(/(^|-)(\w)/g, (_, _dash, letter) => letter.toUpperCase());
  const window = n === "1" ? units[unit] : `${n}*${units[unit]}`;
  return `algorithms.${name}(${requests}, ${window})${burst && burst !== requests ? `.WithBurst(${burst})` : ""}`;
}

// The fields of a policy beside its limit.
function fields({ policy, limit, needs_key: needsKey }, cost) {
  const all = [["Name", `"${policy === "sandbox" ? "api" : policy}"`], ["Limit", expression(limit)]];
  if (needsKey) all.push(["Key", 'keyfunc.APIKey("X-API-Key", findAccount)']);
  if (policy === "completions") all.push(["Cost", "func(*http.Request) int64 { return 500 }"]);
  if (policy === "sandbox" && cost > 1) all.push(["Cost", `func(*http.Request) int64 { return ${cost} }`]);
  if (policy === "search") all.push(["Cost", "searchCost"]);
  if (policy === "login") all.push(["ChargeIf", "func(status int) bool { return status == http.StatusUnauthorized }"]);
  const longest = Math.max(...all.map(([name]) => name.length));
  return all.map(([name, value]) => `\t\t${`${name}:`.padEnd(longest + 1)} ${value},`).join("\n");
}

function program(request, cost) {
  const { policy, needs_key: needsKey } = request;
  const functions = [];
  if (needsKey) {
    functions.push(`// findAccount asks your database.
func findAccount(_ context.Context, apiKey string) (keyfunc.Identity, error) {
	if apiKey != "demo-free" {
		return keyfunc.Identity{}, keyfunc.ErrUnknown
	}
	return keyfunc.Identity{ID: "merchant-1"}, nil
}
`);
  }
  if (policy === "search") {
    functions.push(`// searchCost is 5 for a deep search.
func searchCost(r *http.Request) int64 {
	if r.URL.Query().Get("deep") == "1" {
		return 5
	}
	return 1
}
`);
  }
  return `package main

import (
${needsKey ? '\t"context"\n' : ""}	"log"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
${needsKey ? '\t"github.com/penstock-go/penstock/keyfunc"\n' : ""}	ratelimit "github.com/penstock-go/penstock/middleware"
)

func main() {
	limiter := algorithms.NewMemory(nil) // several instances: shared.New(redisClient, nil)
	limited := ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{
${fields(request, cost)}
	}))
	mux := http.NewServeMux() // your routes
	log.Fatal(http.ListenAndServe(":8080", limited.Handler(mux)))
}
${functions.map((text) => `\n${text}`).join("")}`;
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function command({ method, path, body, key }, count) {
  const request = [method === "GET" ? "" : `-X ${method}`, key ? `-H ${quote(`X-API-Key: ${key}`)}` : "", body ? `-d ${quote(body)}` : "",
    quote(location.origin + path)].filter(Boolean).join(" ");
  return `# ${count} requests, and their statuses
for i in $(seq ${count}); do
  curl -s -o /dev/null -w '%{http_code}\\n' ${request}
done

# one request, with the fields of its response
curl -i ${request}
`;
}

/** Shows the code of a request. */
export function code(request, count, cost) {
  say($("line"), expression(request.limit));
  say($("go"), program(request, cost));
  if ($("curl")) say($("curl"), command(request, count));
}

/** Buttons with data-copy copy the text of an element. */
export function copyButtons() {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const label = button.textContent;
    button.addEventListener("click", async () => {
      const source = $(button.dataset.copy);
      const copied = await copy(source);
      say(button, copied ? "Copied" : "Press Ctrl+C");
      button.addEventListener("blur", () => say(button, label), { once: true });
    });
  }
}

/** Browsers offer the clipboard to pages of HTTPS and of this machine. Elsewhere the text is selected. */
async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(source);
    return false;
  }
}
