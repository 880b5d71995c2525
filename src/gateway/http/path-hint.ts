/** The message for a request to an unknown path. Clients request only a few wrong paths, so most requests get a specific hint. */

/** The message for a path that resembles no other one. It is also the message for rows that do not exist for a caller. */
export const noSuchPath = 'There is no such path. Models are below /v1, tools at /mcp; GET /llms.txt and /openapi.json list what there is.'

/** Endings of paths that providers have and this gateway does not have, each with the alternative. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/\/chat\/completions\/[^/]+$/, 'Answers are not stored here, so there is none to fetch.'],
  [/\/(completions|complete|chat)$/, 'Send messages to POST /v1/chat/completions; a text alone is {"role":"user","content":"…"}.'],
  [/\/responses\/input_tokens$/, 'POST /v1/messages/count_tokens counts the tokens of a prompt.'],
  [/\/responses\/.+$/, 'Responses are not stored here: send what came before as "input" to POST /v1/responses.'],
  [/\/messages\/batches(\/|$)/, 'There are no batches: send each one to POST /v1/messages.'],
  [/\/audio\/translations$/, 'Send the recording to POST /v1/audio/transcriptions and have the text translated by POST /v1/chat/completions.'],
  [/\/sse$/, 'MCP is streamable HTTP here (type "http" in the settings of clients): POST /mcp.'],
  [/\/images\/variations$/, 'POST /v1/images/edits makes pictures from a picture.'],
  [
    /:(streamGenerateContent|generateContent|embedContent|countTokens)$/,
    "Google's API is served below /v1beta: POST /v1beta/models/{model}:generateContent. The base URL of its clients is the address of the gateway alone.",
  ],
]

/** Paths that MCP clients try when they search for an OAuth login, on every path that they derive from the path of the server. */
const loginProbe =
  /^(\/mcp|\/orgs\/[^/]+\/mcp)?(\/\.well-known\/(oauth-|openid-configuration)|(\/oauth)?\/(register|authorize|token)$)|^\/\.well-known\/.*\/(oauth-|openid-configuration)/
const noLogin =
  'There is no OAuth login at this address. Send "Authorization: Bearer <API key or agent token>"; `npx brigade connect <client> --write` writes that into the settings of a client. Programs exchange tokens at POST /oauth/token. GET /llms.txt lists what there is.'

const baseUrls = ' The base URL of OpenAI clients ends in /v1; Claude Code and the SDK of Anthropic add it themselves.'
/** Number of path segments that are compared. No path of the table has more. */
const segmentsMax = 6
const ofInference = (path: string): boolean => path.startsWith('/v1/') && !path.startsWith('/v1/me/')

/**
 * Returns the message of a 404. `paths` are the paths of the table. When the requested path ends with one of them, the base URL of the client is wrong, and
 * the message names the right path. The message repeats no other part of the request.
 */
export function pathHint(asked: string, paths: ReadonlySet<string>): string {
  // A person who is no operator cannot distinguish these paths from unknown ones.
  if (asked.startsWith('/me/operator/')) return noSuchPath
  if (loginProbe.test(asked)) return noLogin
  if (asked.startsWith('/.well-known/mcp')) return 'There is no such path. The card of the MCP server is at /.well-known/mcp/server-card.json.'
  if (asked.startsWith('/.well-known/')) return noSuchPath
  const segments = asked
    .split('/')
    .filter(segment => segment !== '')
    .slice(-segmentsMax)
  for (let from = 0; from < segments.length; from++) {
    const end = segments.slice(from).join('/')
    const found = [`/${end}`, `/v1/${end}`].find(path => paths.has(path))
    if (found !== undefined) return `There is no such path. Did you mean ${found}?${ofInference(found) ? baseUrls : ''}`
  }
  const other = elsewhere.find(([pattern]) => pattern.test(`/${segments.join('/')}`))
  return other === undefined ? noSuchPath : `There is no such path. ${other[1]}`
}
