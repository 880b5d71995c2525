import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RunningGateway, startGateway } from '../../src/composition/serve.ts'
import { loadConfig } from '../../src/platform/config.ts'
import { layMigrated } from '../harness/migrated-folder.ts'

type Json = Record<string, unknown>
interface Operation {
  readonly operationId: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean; readonly schema: Json }[]
  readonly security: readonly Record<string, unknown>[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Json; readonly example?: Json }> }
  readonly responses: Record<string, { readonly description: string; readonly content: Record<string, unknown> }>
}
interface OpenApi {
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly securitySchemes: Json; readonly schemas: Json }
}

/** The schema of a field that may be null is a choice of several types. */
const isTyped = (schema: Json): boolean => schema['type'] !== undefined || (Array.isArray(schema['anyOf']) && schema['anyOf'].every(isTyped))

describe('the OpenAPI document of a gateway without settings', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-openapi-'))
  let gateway: RunningGateway
  let key = ''
  let api: OpenApi
  const operations = (): [string, string, Operation][] =>
    Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, one]): [string, string, Operation] => [path, method, one]))
  beforeAll(async () => {
    layMigrated(folder)
    const configFile = join(folder, 'brigade.config.json')
    writeFileSync(configFile, '{}')
    gateway = await startGateway(loadConfig({ PORT: '0', DATA_DIR: folder, LOCAL_SERVERS: 'off', LOG_LEVEL: 'error', CONFIG_FILE: configFile }))
    key = gateway.firstRun?.key ?? ''
    api = (await (await fetch(`${gateway.baseUrl}/openapi.json`)).json()) as OpenApi
  })
  afterAll(async () => {
    await gateway.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('is well formed: references resolve, names are unique, path parameters are declared, and no header is one that OpenAPI ignores', () => {
    const names = operations().map(([, , one]) => one.operationId)
    expect(new Set(names).size).toBe(names.length)
    for (const [path, method, one] of operations()) {
      const at = `${method} ${path}`
      const inPath = one.parameters.filter(parameter => parameter.in === 'path')
      expect(inPath.map(({ name }) => name).sort(), at).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(match => match[1]).sort())
      expect(
        inPath.every(({ required }) => required),
        at,
      ).toBe(true)
      for (const parameter of one.parameters) expect(['accept', 'content-type', 'authorization'], at).not.toContain(parameter.name.toLowerCase())
      for (const scheme of one.security.flatMap(entry => Object.keys(entry))) expect(api.components.securitySchemes, at).toHaveProperty(scheme)
      for (const response of Object.values(one.responses)) expect(response.description, at).not.toBe('')
      expect(one.requestBody === undefined || Object.values(one.requestBody.content).every(({ schema }) => isTyped(schema)), at).toBe(true)
    }
    for (const [, name] of JSON.stringify(api).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) expect(api.components.schemas).toHaveProperty(name ?? '')
  })

  test('says which calls stream, which take a form, and where the key of a messages call may be', () => {
    const streams = operations().flatMap(([path, , one]) => (one.responses['200']?.content['text/event-stream'] === undefined ? [] : [path]))
    expect(streams.sort()).toEqual([
      '/me/events',
      '/v1/audio/speech',
      '/v1/audio/transcriptions',
      '/v1/chat/completions',
      '/v1/messages',
      '/v1/responses',
      '/v1beta/models/{model}:streamGenerateContent',
    ])
    const file = { type: 'string', format: 'binary' }
    expect(api.paths['/v1/images/edits']?.['post']?.requestBody?.content['multipart/form-data']?.schema['properties']).toMatchObject({
      image: file,
      mask: file,
    })
    expect(api.paths['/v1/audio/transcriptions']?.['post']?.requestBody?.content['multipart/form-data']?.schema['properties']).toMatchObject({ file })
    expect(api.paths['/v1/messages']?.['post']?.security).toEqual([{ bearer: [] }, { messagesKey: [] }, { anthropicKey: [] }])
  })

  /** Returns the file for an example: an image for `@otter.png`, and a recording for `@hello.wav`. */
  async function fileFor(name: string): Promise<File> {
    const [path, body] = name.endsWith('.png')
      ? ['/v1/images/generations', { model: 'sandbox-image', prompt: 'an otter', response_format: 'b64_json' }]
      : ['/v1/audio/speech', { model: 'sandbox-speech', input: 'Hello' }]
    const reply = await post(String(path), JSON.stringify(body))
    const bytes = name.endsWith('.png') ? Buffer.from(JSON.parse(await reply.text()).data[0].b64_json, 'base64') : Buffer.from(await reply.arrayBuffer())
    return new File([new Uint8Array(bytes)], name)
  }

  const post = (path: string, body: string | FormData): Promise<Response> =>
    fetch(`${gateway.baseUrl}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}) },
      body,
    })

  test('has an example for every inference endpoint, and each example gets a reply when it is sent unchanged', async () => {
    const asked: string[] = []
    const inference = operations().flatMap(([path]) =>
      /^\/v1\/(chat|embeddings|messages|responses|images|audio)/.test(path) && !path.includes('/batches') ? [path] : [],
    )
    for (const [path, , one] of operations().filter(([path]) => inference.includes(path))) {
      const [[media, { example }] = ['', { example: undefined }]] = Object.entries(one.requestBody?.content ?? {})
      if (example === undefined) continue
      asked.push(path)
      let body: string | FormData = JSON.stringify(example)
      if (media === 'multipart/form-data') {
        body = new FormData()
        for (const [name, value] of Object.entries(example))
          body.append(name, String(value).startsWith('@') ? await fileFor(String(value).slice(1)) : String(value))
      }
      const reply = await post(path, body)
      expect(reply.status, `${path} ${await reply.text()}`).toBe(200)
    }
    expect(asked.sort()).toEqual(inference.sort())
  })
})
