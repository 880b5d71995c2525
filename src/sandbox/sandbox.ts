import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock } from '../platform/clock.ts'
import type { Ids } from '../platform/values/ids.ts'
import { anthropicMessages } from './anthropic-messages.ts'
import { cohereRerank } from './cohere-rerank.ts'
import { Exchange } from './exchange.ts'
import { geminiGenerate, geminiPath } from './gemini-generate.ts'
import { listModels, openAiError } from './models.ts'
import { openAiSpeech, openAiTranscription } from './openai/openai-audio.ts'
import { openAiChat } from './openai/openai-chat.ts'
import { openAiEmbeddings } from './openai/openai-embeddings.ts'
import { openAiImageEdits, openAiImages, picture, pictureFolder } from './openai/openai-images.ts'
import { openAiModerations } from './openai/openai-moderations.ts'
import { openAiResponses } from './openai/openai-responses.ts'

export interface SandboxOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly host: string
  /** The port. By default, a free port is chosen. */
  readonly port?: number
}

type Serve = (exchange: Exchange) => void | Promise<void>

const routes: Readonly<Record<string, Serve>> = {
  'POST /v1/chat/completions': openAiChat,
  'POST /v1/embeddings': openAiEmbeddings,
  'POST /v1/audio/speech': openAiSpeech,
  'POST /v1/audio/transcriptions': openAiTranscription,
  'POST /v1/images/generations': openAiImages,
  'POST /v1/images/edits': openAiImageEdits,
  'POST /v1/moderations': openAiModerations,
  'POST /v1/rerank': cohereRerank,
  'POST /v1/responses': openAiResponses,
  'POST /v1/messages': anthropicMessages,
  'GET /v1/models': listModels,
}

/**
 * Starts the simulated provider. It is a real HTTP server with the wire formats of OpenAI, Anthropic and Gemini, and Cohere's rerank API. Its answers are deterministic and
 * say that they are simulated. It accepts any credential or none, and stores nothing. `url` ends in /v1. `close` also ends running answers.
 */
export async function startSandbox({ clock, ids, host, port = 0 }: SandboxOptions): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?', 1)[0] ?? ''
    const exchange = new Exchange(request, response, clock, ids)
    const isPicture = request.method === 'GET' && path.startsWith(pictureFolder)
    const isGemini = request.method === 'POST' && geminiPath.test(path)
    const byPath = isPicture ? () => picture(exchange, path) : isGemini ? () => geminiGenerate(exchange, path) : undefined
    const serve = byPath ?? routes[`${request.method} ${path}`] ?? unknownPath
    // A failure after the client has disconnected has no effect. Every other failure breaks the connection.
    Promise.resolve(serve(exchange)).catch(() => response.destroy())
  })
  server.listen(port, host)
  await once(server, 'listening')
  const { port: bound } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}/v1`,
    close() {
      return new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    },
  }
}

function unknownPath(exchange: Exchange): void {
  exchange.json(404, openAiError('The sandbox does not serve this path.', 'invalid_request_error', 'not_found'))
}
