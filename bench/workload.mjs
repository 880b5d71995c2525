/** The requests and their costs. The upstream, the load generator and the check of the charges all use this file. */

/** The tokens that the upstream reports for every call, streamed or not. */
export const usage = { prompt_tokens: 90, completion_tokens: 300, total_tokens: 390 }

const inputInrPerMtok = 10
const outputInrPerMtok = 40

/** The cost of one call in micro-rupees. A rupee for a million tokens is a micro-rupee for one token. */
export const costUinrOfCall = usage.prompt_tokens * inputInrPerMtok + usage.completion_tokens * outputInrPerMtok

/** Returns the operator's configuration file for the gateway under test: one provider and two models with prices. */
export function operatorFile(upstreamUrl) {
  const route = { provider: 'bench', input_inr_per_mtok: inputInrPerMtok, output_inr_per_mtok: outputInrPerMtok }
  return {
    providers: [{ id: 'bench', base_url: `${upstreamUrl}/v1`, auth: 'none' }],
    models: ['bench', 'bench-slow'].map(id => ({ id, kind: 'chat', routes: [route] })),
  }
}

const messages = [
  { role: 'system', content: 'You are a helpful assistant of a travel desk. Answer briefly, name your sources, and never invent a price. '.repeat(2) },
  { role: 'user', content: 'Which month is best for a walk along the forts around Pune, and what should somebody who starts from Mumbai by train pack?' },
]

const bodyOf = fields => JSON.stringify({ messages, max_tokens: 300, ...fields })

/** Number of chunks of a fast stream. */
export const chunksOfStream = 100

/** Returns the scenarios by name, in the order of a round. With `once`, every connection makes one call. */
export function scenariosOf({ slowStreams }) {
  const chat = bodyOf({ model: 'bench' })
  const stream = bodyOf({ model: 'bench', stream: true })
  const [system, ...turns] = messages
  const asMessages = fields => JSON.stringify({ model: 'bench', max_tokens: 300, system: system.content, messages: turns, ...fields })
  // The upstream supports only the chat format, so Brigade translates the request and the reply. A passthrough passes the reply on unchanged.
  const toMessages = { connections: 50, path: '/v1/messages' }
  return [
    { name: 'chat-1', title: 'chat, 1 connection', connections: 1, body: chat },
    { name: 'chat-50', title: 'chat, 50 connections', connections: 50, body: chat },
    { name: 'stream-1', title: 'streams, 1 connection', connections: 1, body: stream, isStream: true },
    { name: 'stream-50', title: 'streams, 50 connections', connections: 50, body: stream, isStream: true },
    { name: 'messages-50', title: 'messages, translated, 50 connections', ...toMessages, body: asMessages({}) },
    { name: 'messages-stream-50', title: 'messages streams, translated, 50 connections', ...toMessages, body: asMessages({ stream: true }), isStream: true },
    ...(slowStreams === 0
      ? []
      : [
          {
            name: 'slow',
            title: `${slowStreams} slow streams`,
            connections: slowStreams,
            body: bodyOf({ model: 'bench-slow', stream: true }),
            isStream: true,
            once: true,
          },
        ]),
  ]
}
