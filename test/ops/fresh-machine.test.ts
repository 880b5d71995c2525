import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RunningGateway, startGateway } from '../../src/composition/serve.ts'
import { loadConfig } from '../../src/platform/config.ts'
import { layMigrated } from '../harness/migrated-folder.ts'

const messages = [{ role: 'user', content: 'Hello' }]

describe('a gateway without settings', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-fresh-'))
  let gateway: RunningGateway
  let key = ''
  beforeAll(async () => {
    layMigrated(folder)
    const configFile = join(folder, 'brigade.config.json')
    writeFileSync(configFile, '{}')
    gateway = await startGateway(loadConfig({ PORT: '0', DATA_DIR: folder, LOCAL_SERVERS: 'off', LOG_LEVEL: 'error', CONFIG_FILE: configFile }))
    key = gateway.firstRun?.key ?? ''
  })
  afterAll(async () => {
    await gateway.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const send = (path: string, body: object | FormData, headers: Record<string, string> = { authorization: `Bearer ${key}` }) =>
    fetch(`${gateway.baseUrl}${path}`, {
      method: 'POST',
      headers: body instanceof FormData ? headers : { ...headers, 'content-type': 'application/json' },
      body: body instanceof FormData ? body : JSON.stringify(body),
    })
  const ask = async (path: string, body: object | FormData) => {
    const reply = await send(path, body)
    return { status: reply.status, headers: reply.headers, json: JSON.parse(await reply.text()) }
  }
  const form = (fields: Record<string, string | Blob>): FormData => {
    const made = new FormData()
    for (const [name, value] of Object.entries(fields)) made.append(name, value)
    return made
  }
  const said = async (path: string, body: object, headers?: Record<string, string>) => {
    const reply = await send(path, body, headers)
    const { error } = JSON.parse(await reply.text())
    return [reply.status, error.code, error.message] as const
  }

  test.each([
    ['/v1/chat/completions', { model: 'sandbox-chat', messages }, 'choices'],
    ['/v1/messages', { model: 'sandbox-chat', max_tokens: 50, messages }, 'content'],
    ['/v1/messages/count_tokens', { model: 'sandbox-chat', messages }, 'input_tokens'],
    ['/v1/responses', { model: 'sandbox-chat', input: 'Hello' }, 'output'],
    ['/v1/embeddings', { model: 'sandbox-embed', input: 'Hello' }, 'data'],
    ['/v1/images/generations', { model: 'sandbox-image', prompt: 'an otter' }, 'data'],
  ])('%s answers', async (path, body, field) => {
    const { status, json } = await ask(path, body)
    expect(status, JSON.stringify(json)).toBe(200)
    expect(json[field]).toBeDefined()
  })

  test.each(['/v1/chat/completions', '/v1/messages', '/v1/responses'])('%s streams', async path => {
    const reply = await send(path, { model: 'sandbox-chat', max_tokens: 50, stream: true, ...(path === '/v1/responses' ? { input: 'Hello' } : { messages }) })
    expect([reply.status, reply.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/event-stream')])
    expect(await reply.text()).toMatch(/\[DONE\]|message_stop|response\.completed/)
  })

  test('an answer in a requested format is JSON that matches the schema, in every client format', async () => {
    const schema = { type: 'object', properties: { city: { type: 'string' }, people: { type: 'integer' } }, required: ['city', 'people'] }
    const format = { name: 'answer', schema }
    const wanted = { city: expect.any(String), people: expect.any(Number) }
    const chat = await ask('/v1/chat/completions', { model: 'sandbox-chat', messages, response_format: { type: 'json_schema', json_schema: format } })
    expect(JSON.parse(chat.json.choices[0].message.content)).toEqual(wanted)
    const response = await ask('/v1/responses', { model: 'sandbox-chat', input: 'Hello', text: { format: { type: 'json_schema', ...format } } })
    expect(JSON.parse(response.json.output[0].content[0].text)).toEqual(wanted)
    const message = await ask('/v1/messages', { model: 'sandbox-chat', max_tokens: 500, messages, output_config: { format: { type: 'json_schema', schema } } })
    expect(JSON.parse(message.json.content[0].text)).toEqual(wanted)
    const any = await ask('/v1/chat/completions', { model: 'sandbox-chat', messages, response_format: { type: 'json_object' } })
    expect(JSON.parse(any.json.choices[0].message.content)).toEqual({ simulated: expect.any(String) })
  })

  test('an image is made, its URL serves it, and it can be edited', async () => {
    const drawn = await ask('/v1/images/generations', { model: 'sandbox-image', prompt: 'an otter' })
    const picture = await (await fetch(drawn.json.data[0].url)).blob()
    expect(picture.type).toBe('image/png')
    const edited = await ask('/v1/images/edits', form({ model: 'sandbox-image', prompt: 'in blue', image: picture }))
    expect([edited.status, edited.json.data.length]).toEqual([200, 1])
  })

  test('speech is made, and this speech is transcribed', async () => {
    const speech = await send('/v1/audio/speech', { model: 'sandbox-speech', input: 'Hello' })
    expect([speech.status, speech.headers.get('content-type')]).toEqual([200, 'audio/wav'])
    const taken = await ask(
      '/v1/audio/transcriptions',
      form({ model: 'sandbox-audio', file: new File([new Uint8Array(await speech.arrayBuffer())], 'hello.wav') }),
    )
    expect([taken.status, taken.json.text]).toEqual([200, expect.stringContaining('simulated')])
  })

  test('the panel makes three simulated images and picks one; three images and one judge are charged', async () => {
    const { status, headers, json } = await ask('/v1/images/generations', { model: 'image-sangam', prompt: 'an otter' })
    expect(status, JSON.stringify(json)).toBe(200)
    expect(json.data).toHaveLength(1)
    const drawn = { model: 'sandbox-image', provider: 'sandbox', ok: true }
    expect(json.br_sangam).toMatchObject({ panel: [drawn, drawn, drawn], judge_model: 'sandbox-vision', judged: true, reason: 'picked by the judge' })
    expect(Number(headers.get('x-br-cost-inr'))).toBeGreaterThan(6)
    expect(Number(headers.get('x-br-cost-inr'))).toBeLessThan(6.1)
    const preview = await ask('/me/route/preview', { model: 'image-sangam', prompt: 'an otter' })
    expect(preview.json).toMatchObject({ model: 'brigade/image-sangam', provider: 'sandbox' })
  })

  test('with a key of the caller, the panel is not simulated; no simulated model counts as in India', async () => {
    const own = await ask('/me/route/preview', { model: 'image-sangam', prompt: 'an otter', upstream_key: 'any-text' })
    expect(own.json.provider).toBe('together')
    expect(own.json.candidates.find((one: { provider: string }) => one.provider === 'sandbox')).toMatchObject({
      eligible: false,
      why: expect.stringContaining('simulated'),
    })
    expect((await said('/v1/images/generations', { model: 'image-sangam:india', prompt: 'an otter' })).slice(0, 2)).toEqual([422, 'no_route'])
  })

  test('the error for a model without a provider key says how to get one, and names a model that answers without a key', async () => {
    const [status, code, message] = await said('/v1/chat/completions', { model: 'gpt-4o', messages })
    expect([status, code]).toEqual([400, 'no_route'])
    for (const part of ['openai is not configured here', 'PUT /me/byok/openai', 'upstream_key', '"sandbox-chat"']) expect(message).toContain(part)
    expect((await said('/v1/images/generations', { model: 'sdxl', prompt: 'an otter' }))[2]).toContain('"sandbox-image"')
    const claude = await said('/v1/messages', { model: 'claude-sonnet-4-5', max_tokens: 5, messages })
    expect(claude.slice(0, 2)).toEqual([401, 'byok_required'])
    for (const part of ['PUT /me/byok/anthropic', 'x-br-api-key', 'ANTHROPIC_MODEL']) expect(claude[2]).toContain(part)
  })

  test('the error for a model of the wrong kind names the endpoint for that model', async () => {
    const wrong = async (path: string, body: object) => (await said(path, body))[2]
    expect(await wrong('/v1/chat/completions', { model: 'sandbox-image', messages })).toContain('/v1/images/generations')
    expect(await wrong('/v1/images/generations', { model: 'sandbox-chat', prompt: 'x' })).toContain('/v1/chat/completions')
    expect(await wrong('/v1/embeddings', { model: 'sandbox-speech', input: 'x' })).toContain('/v1/audio/speech')
    expect(await wrong('/v1/chat/completions', { model: 'sandbox-audio', messages })).toContain('/v1/audio/transcriptions')
    expect(await wrong('/v1/responses', { model: 'sandbox-embed', input: 'x' })).toContain('/v1/embeddings')
  })

  test.each([
    ['/v1/v1/chat/completions', '/v1/chat/completions'],
    ['//v1/responses', '/v1/responses'],
    ['/messages', '/v1/messages'],
    ['/api/v1/embeddings', '/v1/embeddings'],
    ['/openai/deployments/x/chat/completions', '/v1/chat/completions'],
    ['/v1/completions', '/v1/chat/completions'],
    ['/v1/responses/resp_1/cancel', '"input" to POST /v1/responses'],
    ['/v1/audio/translations', '/v1/audio/transcriptions'],
    ['/v1/mcp', '/mcp'],
    ['/v1/me/orgs', '/me/orgs'],
    ['/', '/llms.txt'],
  ])('the error for an unknown path names the right one: %s', async (path, there) => {
    const [status, code, message] = await said(path, {})
    expect([status, code]).toEqual([404, 'not_found'])
    expect(message).toContain(there)
  })

  test('a base URL with one /v1 too many has an error of its own', async () => {
    expect((await said('/v1/v1/messages', {}))[2]).toBe(
      'There is no such path. Did you mean /v1/messages? The base URL of OpenAI clients ends in /v1; Claude Code and the SDK of Anthropic add it themselves.',
    )
  })

  test('a very long path gets a normal reply', async () => {
    expect(await said(`/${'v1/'.repeat(3000)}x`, {})).toEqual([404, 'not_found', expect.stringContaining('/llms.txt')])
  })

  test('the error for a wrong method names the right method', async () => {
    const reply = await fetch(`${gateway.baseUrl}/v1/messages`)
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST'])
    expect(JSON.parse(await reply.text()).error.message).toBe('This path takes POST only.')
  })

  test('a trailing slash in a path makes no difference', async () => {
    expect((await send('/v1/chat/completions/', { model: 'sandbox-chat', messages })).status).toBe(200)
  })

  test('when /v1/messages gets only a provider key, the error says where the gateway key goes', async () => {
    const [status, code, message] = await said('/v1/messages', { model: 'claude-sonnet-4-5', messages }, { 'x-api-key': 'sk-ant-api03-abc' })
    expect([status, code]).toEqual([401, 'invalid_api_key'])
    expect(message).toContain('x-br-api-key')
    expect(message).not.toContain('sk-ant')
  })
})
