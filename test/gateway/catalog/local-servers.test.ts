import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { loadCatalog } from '../../../src/gateway/catalog/loading/load.ts'
import { findLocalServers, type LocalSearch } from '../../../src/gateway/catalog/loading/local-servers.ts'
import { loadConfig } from '../../../src/platform/config.ts'

const servers: Server[] = []
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
})

/** Starts a real HTTP server on loopback that answers every GET with this text. With null it never answers. */
async function listening(body: string | null, status = 200): Promise<number> {
  const server = createServer((_, response) => {
    if (body !== null) response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  })
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

async function getJson(url: string, timeoutMs: number): Promise<unknown> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) })
  if (!reply.ok) throw new Error(`status ${reply.status}`)
  return reply.json()
}

/** Returns a port on which no program listens, because it was free a moment ago. */
async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

async function search(ports: Readonly<Record<string, number>>, over: Partial<LocalSearch> = {}) {
  const nowhere = await closedPort()
  const others = { 'local-ollama': nowhere, 'local-llamacpp': nowhere, 'local-lmstudio': nowhere, 'local-vllm': nowhere }
  return findLocalServers({ config: loadConfig({}), getJson, ownPorts: [], ...over, ports: { ...others, ...ports } })
}

const listOf = (...ids: string[]): string => JSON.stringify({ object: 'list', data: ids.map(id => ({ id, object: 'model' })) })

describe('a local server', () => {
  test('a local server that lists models becomes a free provider without keys, outside India', async () => {
    const port = await listening(listOf('llama3.2:3b', 'nomic-embed-text'))
    const [part, ...others] = await search({ 'local-ollama': port })
    expect(others).toEqual([])
    expect(part?.provider).toMatchObject({
      id: 'local-ollama',
      baseUrl: `http://127.0.0.1:${port}/v1`,
      auth: 'none',
      configured: true,
      residency: 'global',
      byok: false,
    })
    const { models } = loadCatalog({ config: loadConfig({}), operatorFile: null, extraProviders: part ? [part] : [] })
    expect(models.get('llama3.2:3b')).toMatchObject({ kind: 'chat', tools: true })
    expect(models.get('llama3.2:3b')?.routes[0]?.price).toMatchObject({ inputUinrPerMtok: 0n, outputUinrPerMtok: 0n })
    expect(models.get('nomic-embed-text')?.kind).toBe('embedding')
    expect(models.get('auto:cheapest')?.routes.map(route => route.modelId)).toEqual(['llama3.2:3b'])
  })

  test('a model of a local server keeps the context window that the server reports', async () => {
    const port = await listening(JSON.stringify({ data: [{ id: 'Qwen/Qwen3-8B', max_model_len: 40_960 }] }))
    const [part] = await search({ 'local-vllm': port })
    expect(part?.models[0]).toMatchObject({ id: 'Qwen/Qwen3-8B', context_length: 40_960 })
  })

  test('a local server never replaces a catalog model with the same id', async () => {
    const port = await listening(listOf('gpt-4o', 'mine'))
    const parts = await search({ 'local-vllm': port })
    const { models } = loadCatalog({ config: loadConfig({}), operatorFile: null, extraProviders: parts })
    expect(models.get('gpt-4o')?.routes.map(route => route.provider.id)).toEqual(['openai'])
    expect(models.get('mine')?.routes.map(route => route.provider.id)).toEqual(['local-vllm'])
  })

  test.each([
    ['answers something else', '{"hello":true}', 200],
    ['answers no JSON', '<html>', 200],
    ['answers 404', listOf('x'), 404],
    ['is a gateway itself', JSON.stringify({ object: 'list', data: [{ id: 'm', routes: [] }] }), 200],
    ['lists ids that are no ids', JSON.stringify({ data: [{ id: 7 }, { id: 'a b' }, { id: '' }, null] }), 200],
    ['never answers', null, 200],
  ])('a local server that %s is ignored', async (_, body, status) => {
    expect(await search({ 'local-llamacpp': await listening(body, status) })).toEqual([])
  })

  test('a port of this process is not queried', async () => {
    const port = await listening(listOf('x'))
    expect(await search({ 'local-llamacpp': port }, { ownPorts: [port] })).toEqual([])
  })

  test('local servers are not searched for when LOCAL_SERVERS is off', async () => {
    const port = await listening(listOf('x'))
    expect(await search({ 'local-llamacpp': port }, { config: loadConfig({ LOCAL_SERVERS: 'off' }) })).toEqual([])
  })
})
