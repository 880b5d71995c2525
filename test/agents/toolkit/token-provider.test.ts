/** When the token provider mints tokens. A small server plays the gateway and can fail. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type AgentTokenOptions, createAgentTokenProvider } from '../../../src/agents/toolkit/token-provider.ts'
import { until } from '../../harness/until.ts'

/** An answer to a mint. After the listed answers, the server issues tokens of 900 seconds. */
interface Answer {
  readonly status: number
  readonly code?: string
  readonly headers?: Record<string, string>
  readonly lifeS?: number
}

let server: Server
let answers: Answer[] = []
let mints = 0
let nowMs = 0
let gate: Promise<void> | null = null

beforeEach(async () => {
  answers = []
  mints = 0
  nowMs = 0
  gate = null
  server = createServer(async (_request, response) => {
    const number = ++mints
    await gate
    const { status, code, headers, lifeS = 900 } = answers.shift() ?? { status: 200 }
    const minted = { access_token: `token-${number}`, expires_in: lifeS, agent_id: 7, scope: 'inference' }
    const body = status === 200 ? minted : { error: { code, message: 'scripted', type: 'api_error' } }
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(() => {
  server.close()
  server.closeAllConnections()
})

const provider = (options: Partial<AgentTokenOptions> = {}) =>
  createAgentTokenProvider({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`,
    agent: 7,
    credential: 'br-key',
    now: () => nowMs,
    ...options,
  })
const at = (seconds: number): void => {
  nowMs = seconds * 1000
}
const times = <T>(count: number, what: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: count }, what))

describe('a valid token', () => {
  test('a valid token is minted once for all callers, and used until a fifth of its life is left', async () => {
    const tokens = provider()
    expect(new Set(await times(20, () => tokens.getToken()))).toEqual(new Set(['token-1']))
    at(683)
    expect(await tokens.get()).toMatchObject({ token: 'token-1', agentId: 7, scope: 'inference', expiresInS: 900 })
    expect(mints).toBe(1)
  })

  test('a valid token is replaced in the background before it expires', async () => {
    const tokens = provider()
    await tokens.getToken()
    at(721)
    expect(await times(5, () => tokens.getToken())).toEqual(Array(5).fill('token-1'))
    await until(async () => (await tokens.getToken()) === 'token-2', 'a new token')
    expect(mints).toBe(2)
  })

  test('a token is not used in its last thirty seconds, and calls wait for a new one', async () => {
    const tokens = provider()
    await tokens.getToken()
    at(871)
    expect(await times(5, () => tokens.getToken())).toEqual(Array(5).fill('token-2'))
  })

  test('a token with a short life is used for at least half of it', async () => {
    answers = [{ status: 200, lifeS: 40 }]
    const tokens = provider()
    await tokens.getToken()
    at(19)
    expect(await tokens.getToken()).toBe('token-1')
    expect(mints).toBe(1)
    at(31)
    expect(await tokens.getToken()).toBe('token-2')
  })

  test('the life of a token counts from the request, not from the reply', async () => {
    let open = (): void => undefined
    gate = new Promise(resolve => {
      open = resolve
    })
    const tokens = provider()
    const first = tokens.getToken()
    await until(() => mints === 1, 'a mint')
    at(100)
    open()
    await first
    at(871)
    expect(await tokens.getToken(), '900 seconds after the question').toBe('token-2')
  })

  test('a refused token is replaced once for all callers that report it, and not again after it was replaced', async () => {
    const tokens = provider()
    const refused = await tokens.getToken()
    expect(await times(10, () => tokens.getToken({ forceRefresh: true, refused }))).toEqual(Array(10).fill('token-2'))
    expect(await tokens.getToken({ forceRefresh: true, refused })).toBe('token-2')
    expect(mints).toBe(2)
    expect(await tokens.getToken({ forceRefresh: true })).toBe('token-3')
  })
})

describe('a gateway that cannot mint', () => {
  test('while the gateway cannot mint, the old token is used while it is valid, and mints are tried less and less often', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    const tokens = provider()
    await tokens.getToken()
    answers = Array(1000).fill({ status: 503, code: 'database_unavailable' })
    for (let second = 721; second < 895; second++) {
      at(second)
      expect(await tokens.getToken()).toBe('token-1')
    }
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
    expect(mints).toBeGreaterThan(4)
    expect(mints).toBeLessThan(20)
    answers = []
    at(960)
    expect(await tokens.getToken()).toMatch(/^token-/)
  })

  test('no mint is tried before the time that the gateway stated', async () => {
    const tokens = provider()
    await tokens.getToken()
    answers = [{ status: 429, code: 'rate_limit_exceeded', headers: { 'retry-after': '60' } }]
    at(721)
    await tokens.getToken()
    await until(() => mints === 2, 'a mint')
    await until(() => answers.length === 0, 'a mint')
    for (let second = 722; second < 780; second++) {
      at(second)
      await tokens.getToken()
    }
    expect(mints).toBe(2)
    at(790)
    await tokens.getToken()
    await until(async () => (await tokens.getToken()) === 'token-3', 'a new token')
  })

  test('a call without a token tries to mint a few times, but only once with a wrong key', async () => {
    answers = [{ status: 503, code: 'database_unavailable', headers: { 'retry-after': '0' } }]
    expect(await provider({ now: undefined }).getToken()).toBe('token-2')
    answers = [{ status: 401, code: 'invalid_api_key' }]
    await expect(provider().getToken()).rejects.toMatchObject({ name: 'BrigadeError', code: 'invalid_api_key', status: 401 })
    expect(mints).toBe(3)
  })

  test('a call does not wait long for a gateway that cannot mint, and returns its error immediately', async () => {
    answers = [{ status: 503, code: 'database_unavailable', headers: { 'retry-after': '600' } }]
    const tokens = provider()
    await expect(tokens.getToken()).rejects.toMatchObject({ code: 'database_unavailable', retryAfterS: 600 })
    await expect(tokens.getToken()).rejects.toMatchObject({ code: 'database_unavailable' })
    expect(mints).toBe(1)
  })
})

describe('a revoked agent', () => {
  test('a revocation ends the provider. Its owner is notified once, and no further request is sent', async () => {
    const ends: string[] = []
    const tokens = provider({
      onRevoked(error) {
        ends.push(error.code)
        throw new Error('a callback that fails')
      },
    })
    await tokens.getToken()
    answers = [{ status: 409, code: 'agent_revoked' }]
    at(721)
    expect(await tokens.getToken()).toBe('token-1')
    await until(() => tokens.revoked !== null, 'the end')
    for (const result of await Promise.allSettled(Array.from({ length: 5 }, () => tokens.getToken({ forceRefresh: true }))))
      expect(result).toMatchObject({ status: 'rejected', reason: { name: 'AgentRevokedError', code: 'agent_revoked' } })
    expect(mints).toBe(2)
    expect(ends).toEqual(['agent_revoked'])
  })
})

describe('options that cannot work', () => {
  test('options that cannot work throw immediately', () => {
    expect(() => provider({ agent: undefined })).toThrow('agent is missing')
    expect(() => provider({ baseUrl: 'gateway.example.com' })).toThrow('baseUrl must be the http(s) address')
    expect(() => provider({ baseUrl: 'https://me:secret@gateway.example.com' })).toThrow(/^baseUrl is the address alone: no user, password/)
  })

  test('the error for an address that redirects names it, and the key is not sent to the target', async () => {
    answers = [{ status: 301, headers: { location: 'https://new.example.com/' } }]
    await expect(provider().getToken()).rejects.toMatchObject({ code: 'wrong_address', message: expect.stringContaining('to https://new.example.com/. Give') })
    expect(mints).toBe(1)
  })

  test('an empty credential gets another error than a refused one', async () => {
    await expect(provider({ credential: () => ' \n' }).getToken()).rejects.toThrow('The credential is empty')
    expect(mints).toBe(0)
  })

  test('an error of the credential function reaches the caller unchanged', async () => {
    const cause = new Error('no such file')
    await expect(provider({ credential: () => Promise.reject(cause) }).getToken()).rejects.toBe(cause)
  })
})
