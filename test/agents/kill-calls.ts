/** Calls of every kind that run until they are cut, and checks of what their clients see at the end. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'vitest'
import { until } from '../harness/app.ts'
import type { Fleet } from '../harness/fleet.ts'
import type { GatewayProcess } from '../harness/process.ts'
import type { RecordedRequest, UpstreamScript } from '../harness/upstream-server.ts'

/** The caller: a token of the agent, or a plain key that names the agent. */
export interface Caller {
  readonly credential: string
  readonly label?: string
  /** The error code at the end of the caller's streams. The default says that the agent was revoked. */
  readonly code?: 'agent_revoked' | 'agent_paused' | 'invalid_api_key' | 'database_unavailable'
}

/** One running call. */
export interface RunningCall {
  readonly name: string
  /** Number of usage events of the call. It is one, except for the image panel. */
  readonly events: number
  /** Resolves when the client has read a part of the answer. For calls without partial answers, resolves when the provider has received the request. */
  readonly begun: Promise<void>
  /** Resolves when the client has read the end of the call. Rejects when the end has another reason than the expected one. */
  readonly cut: Promise<void>
  readonly hasEnded: () => boolean
}

export const words = Array.from({ length: 9 }, (_, index) => `word${index} `)
const prompt = 'Tell me a long story.'
/** The provider pauses after this number of chunks. */
const heldAfter = 3

/**
 * Writes a configuration with one provider for each format. All of them use the fleet's upstream. Prices are ₹100 per million output tokens and ₹50
 * per million characters.
 */
export function writeKillConfig(fleet: Fleet): string {
  const price = { source: 'test', as_of: '2026-01-01' }
  const route = { input_inr_per_mtok: 0, output_inr_per_mtok: 100, ...price }
  const provider = (id: string, more: object = {}) => ({ id, base_url: fleet.upstream.url, auth: 'none', residency: 'global', ...more })
  const chat = (id: string, served: string) => ({ id, kind: 'chat', context_length: 100_000, routes: [{ provider: served, ...route }] })
  const file = join(fleet.newFolder(), 'brigade.config.json')
  writeFileSync(
    file,
    JSON.stringify({
      providers: [provider('fixed'), provider('claude', { dialect: 'anthropic' }), provider('resp', { dialect: 'openai-responses' })],
      models: [
        chat('fixed-model', 'fixed'),
        chat('claude-model', 'claude'),
        chat('resp-model', 'resp'),
        { id: 'say', kind: 'speech', default_voice: 'v', routes: [{ provider: 'fixed', inr_per_million_characters: 50, ...price }] },
      ],
    }),
  )
  return file
}

/** Returns the upstream's answer to all these calls: a part of an answer, and nothing more until the test releases it. */
export function heldAnswer(request: RecordedRequest): UpstreamScript {
  if (request.path.endsWith('/audio/speech'))
    return { headers: { 'content-type': 'audio/mpeg' }, rawStream: [new Uint8Array(1000).fill(1)], holdAfterRaw: true }
  if (request.json?.['stream'] !== true) return { hold: true }
  // The answer is slow for a tool, because a tool reports progress only once a second.
  const isTool = JSON.stringify(request.json).includes(toolPrompt)
  return { chunks: words, holdAfterChunks: heldAfter, ...(isTool ? { chunkIntervalMs: 600 } : {}) }
}

const toolPrompt = 'Asked by a tool.'

/** The stream formats: the path of each, its body, and the check of the error that says that the agent is revoked. */
const formats = {
  chat: { path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: prompt }] }, check: checkChat },
  messages: { path: '/v1/messages', body: { max_tokens: 500, messages: [{ role: 'user', content: prompt }] }, check: checkMessages },
  responses: { path: '/v1/responses', body: { input: prompt }, check: checkResponses },
} as const

type Format = keyof typeof formats

/** Starts one call of every kind by one caller on one process. Images are not included, because their providers are another server. */
export function allCalls(fleet: Fleet, process: GatewayProcess, caller: Caller): RunningCall[] {
  return [
    stream(process, caller, 'chat', 'fixed-model'),
    stream(process, caller, 'chat', 'claude-model'),
    stream(process, caller, 'messages', 'claude-model'),
    stream(process, caller, 'messages', 'fixed-model'),
    stream(process, caller, 'responses', 'resp-model'),
    stream(process, caller, 'responses', 'fixed-model'),
    whole(fleet, process, caller),
    speech(process, caller),
    tool(process, caller),
  ]
}

export function stream(process: GatewayProcess, caller: Caller, format: Format, model: string): RunningCall {
  const { path, body, check } = formats[format]
  const opened = post(process, caller, path, { ...body, model, stream: true })
  let text = ''
  const read = async (): Promise<void> => {
    const response = await opened
    const decoder = new TextDecoder()
    for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) text += decoder.decode(part, { stream: true })
    check(text, caller.code ?? 'agent_revoked')
  }
  return running(`${format} of ${model}`, 1, () => text.includes(words[heldAfter - 1]?.trim() ?? ''), read())
}

/** Starts a call that is not streamed and waits for its provider. */
export function whole(fleet: Fleet, process: GatewayProcess, caller: Caller): RunningCall {
  const marker = `whole ${Math.random()}`
  const opened = post(process, caller, '/v1/chat/completions', { model: 'fixed-model', messages: [{ role: 'user', content: marker }] })
  const isDialed = (): boolean => fleet.upstream.requests.some(({ raw }) => raw.includes(marker))
  return running(
    'a whole chat',
    1,
    isDialed,
    opened.then(response => checkRefused(response, caller)),
  )
}

function speech(process: GatewayProcess, caller: Caller): RunningCall {
  const opened = post(process, caller, '/v1/audio/speech', { model: 'say', input: 'Good morning', voice: 'v' })
  let bytes = 0
  const read = async (): Promise<void> => {
    const response = await opened
    let isBroken = false
    try {
      for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) bytes += part.length
    } catch {
      isBroken = true
    }
    expect(isBroken, 'audio has no place for words: its connection breaks').toBe(true)
  }
  return running('speech', 1, () => bytes === 1000, read())
}

/** Starts a call of the MCP chat tool with progress. */
function tool(process: GatewayProcess, { credential, label }: Caller): RunningCall {
  const headers = { authorization: `Bearer ${credential}`, ...(label === undefined ? {} : { 'x-br-agent-id': label }) }
  const client = new Client({ name: 'test', version: '1' })
  let pieces = 0
  const read = async (): Promise<void> => {
    await client.connect(new StreamableHTTPClientTransport(new URL(`${process.baseUrl}/mcp`), { requestInit: { headers } }) as never)
    const onprogress = ({ progress }: { progress: number }): void => {
      pieces = progress
    }
    const result = await client.callTool({ name: 'chat', arguments: { prompt: toolPrompt, model: 'fixed-model' } }, undefined, { onprogress })
    expect(result).toMatchObject({
      isError: true,
      structuredContent: { code: 'agent_revoked', reason: 'agent_revoked', should_retry: false, usage: { completion_tokens: expect.any(Number) } },
    })
    expect((result.structuredContent as { partial_text: string }).partial_text).toContain(words[0])
    await client.close()
  }
  return running('the chat tool', 1, () => pieces > 0, read())
}

/** Starts an image call whose provider runs a job. The gateway polls the job repeatedly. */
export function imageJob(process: GatewayProcess, caller: Caller, key: string, looks: () => number): RunningCall {
  const body = { model: 'flux-1-pro', provider: 'black-forest-labs', prompt: 'a slow boat', upstream_key: key }
  const before = looks()
  const opened = post(process, caller, '/v1/images/generations', body)
  return running(
    'an image job',
    1,
    () => looks() >= before + 2,
    opened.then(response => checkRefused(response, caller)),
  )
}

/** Starts a call of the image panel. All its members wait for their provider. */
export function panel(process: GatewayProcess, caller: Caller, key: string, dialed: () => number): RunningCall {
  const before = dialed()
  const opened = post(process, caller, '/v1/images/generations', { model: 'brigade/image-sangam', prompt: 'an otter', upstream_key: key })
  return running(
    'the panel',
    3,
    () => dialed() === before + 3,
    opened.then(response => checkRefused(response, caller)),
  )
}

function running(name: string, events: number, hasBegun: () => boolean, ended: Promise<void>): RunningCall {
  let state: 'runs' | 'ended' | Error = 'runs'
  const cut = ended.then(
    () => {
      state = 'ended'
    },
    (error: Error) => {
      state = error
      error.message = `${name}: ${error.message}`
      throw error
    },
  )
  // A failed call rejects `begun`. This handler prevents an unhandled rejection when nobody awaits `cut` yet.
  cut.catch(() => undefined)
  const begun = until(() => {
    if (state instanceof Error) throw state
    return hasBegun()
  }, 20_000)
  begun.catch(() => undefined)
  return { name, events, begun, cut, hasEnded: () => state !== 'runs' }
}

function post(process: GatewayProcess, { credential, label }: Caller, path: string, body: object): Promise<Response> {
  return fetch(process.baseUrl + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json', ...(label === undefined ? {} : { 'x-br-agent-id': label }) },
    body: JSON.stringify(body),
  })
}

/** Checks the reply of a call that sent nothing: 401 with the reason for a token, and 403 for a key that names the agent. */
async function checkRefused(response: Response, { label, code }: Caller): Promise<void> {
  const { error, reason } = (await response.json()) as { error: { code: string }; reason?: string }
  if (code === 'invalid_api_key') expect([response.status, error.code]).toEqual([401, code])
  else
    expect([response.status, error.code, reason]).toEqual(label === undefined ? [401, 'invalid_api_key', 'agent_revoked'] : [403, 'agent_revoked', undefined])
}

const datasOf = (text: string): string[] => text.split('\n\n').flatMap(block => /^data: (.*)$/m.exec(block)?.[1] ?? [])
const jsonAt = (text: string, at: number) => JSON.parse(datasOf(text).at(at) ?? 'null')

/** The error types of ends other than a refused credential. */
const streamTypes: Readonly<Record<string, string>> = { database_unavailable: 'api_error', agent_paused: 'permission_error' }

function checkChat(text: string, code: string): void {
  expect(text).toMatch(/data: \[DONE\]\n\n$/)
  expect(jsonAt(text, -2)).toMatchObject({
    error: { type: streamTypes[code] ?? 'authentication_error', code, param: null },
    usage: { total_tokens: expect.any(Number) },
  })
  expect(text).not.toContain('"finish_reason":"')
}

function checkMessages(text: string, code: string): void {
  expect(text).toMatch(/\nevent: error\ndata: .*\n\n$/)
  expect(jsonAt(text, -1)).toMatchObject({ type: 'error', error: { type: 'authentication_error', code } })
  expect(text).not.toContain('message_stop')
}

function checkResponses(text: string, code: string): void {
  expect(text).toMatch(/\nevent: response\.failed\ndata: .*\n\n$/)
  const numbers = datasOf(text).map(data => JSON.parse(data).sequence_number)
  expect(numbers).toEqual(numbers.map((_, index) => index))
  expect(jsonAt(text, -1).response).toMatchObject({ status: 'failed', error: { message: expect.stringMatching(new RegExp(`^${code}: `)) } })
}
