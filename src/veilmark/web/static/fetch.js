// Requests to our own server, with the token that changes need.
const token = () => document.querySelector("meta[name=csrf]")?.content ?? "";

/** The answer to a POST; `body` is FormData, or anything that becomes JSON. */
export function post(url, body) {
  const headers = { "X-CSRF-Token": token() };
  if (!(body instanceof FormData)) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(body ?? {});
  }
  return fetch(url, { method: "POST", headers, body });
}

/** What a GET returns as JSON; an error carries the server's words. */
export async function get(url) {
  const answer = await fetch(url);
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error ?? answer.statusText);
  return content;
}
