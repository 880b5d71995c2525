import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AnthropicBedrock, AnthropicBedrockMantle } from '@anthropic-ai/bedrock-sdk'
import { AnthropicFoundry } from '@anthropic-ai/foundry-sdk'
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk'
import { afterAll, describe, expect, test } from 'vitest'
import { loadCatalog } from '../../../src/gateway/catalog/loading/load.ts'
import { SigV4Authoriser } from '../../../src/gateway/cloud/sigv4.ts'
import { loadConfig } from '../../../src/platform/config.ts'
import { isSignedWith } from '../../harness/cloud-servers.ts'
import type { RecordedRequest } from '../../harness/upstream-server.ts'

/** The vendors' own SDKs say which address, headers and signature a request has. */
describe('the SDKs of the clouds as oracles', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-oracles-'))
  const operatorFile = join(folder, 'brigade.config.json')
  writeFileSync(operatorFile, '{}')
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const baseUrls = (env: Record<string, string>) => {
    const { providers } = loadCatalog({ config: loadConfig(env), operatorFile })
    return (id: string): string | undefined => providers.get(id)?.baseUrl
  }

  test('the rows of the catalog have the addresses that the SDKs call', () => {
    const region = {
      BEDROCK_REGION: 'ap-south-1',
      BEDROCK_MANTLE_REGION: 'ap-south-1',
      BEDROCK_MANTLE_OPENAI_REGION: 'ap-south-1',
      BEDROCK_MANTLE_CLAUDE_REGION: 'ap-south-1',
    }
    const at = baseUrls({ ...region, AZURE_RESOURCE: 'acme', AZURE_CLAUDE_RESOURCE: 'acme' })
    const plain = (url: string): string => url.replace(/\/+$/, '')
    expect(at('azure-claude')).toBe(`${plain(new AnthropicFoundry({ resource: 'acme', apiKey: 'k' }).baseURL)}/v1`)
    expect(at('bedrock-mantle-claude')).toBe(`${plain(new AnthropicBedrockMantle({ awsRegion: 'ap-south-1', apiKey: 'k' }).baseURL)}/v1`)
    expect(at('bedrock')).toBe(`${plain(new AnthropicBedrock({ awsRegion: 'ap-south-1', apiKey: 'k' } as never).baseURL)}/openai/v1`)
    expect(at('bedrock-mantle')).toBe('https://bedrock-mantle.ap-south-1.api.aws/v1')
    expect(at('azure')).toBe('https://acme.openai.azure.com/openai/v1')
  })

  test.each(['asia-south1', 'global', 'us', 'eu'])('the host of Vertex in %s is that of the SDK', location => {
    const at = baseUrls({ VERTEX_OPENAI_LOCATION: location, VERTEX_OPENAI_PROJECT: 'acme-1' })
    const sdk = new AnthropicVertex({ region: location, projectId: 'acme-1', authClient: {} } as never)
    expect(at('vertex-openai')).toBe(`${new URL(sdk.baseURL).origin}/v1beta1/projects/acme-1/locations/${location}/endpoints/openapi`)
  })

  test.each([
    ['a dot segment', { AZURE_RESOURCE: '..' }],
    ['another host', { AZURE_RESOURCE: 'acme.evil' }],
    ['a path', { AZURE_RESOURCE: 'a/b' }],
    ['a port', { AZURE_RESOURCE: 'acme:8080' }],
    ['a segment with a slash', { VERTEX_OPENAI_PROJECT: 'a/b', VERTEX_OPENAI_LOCATION: 'eu' }],
    ['no region', { BEDROCK_REGION: 's3' }],
    ['no location', { VERTEX_LOCATION: 'x-y', VERTEX_PROJECT: 'acme-1' }],
  ])('the gateway does not start with a value of the operator that is %s', (_what, env) => {
    expect(() => baseUrls(env)).toThrow(/The values of the provider [a-z-]+ give no address: .* must be (one label|one segment|the name of a)/)
  })

  test.each([
    ['https://{resource}/v1', 'the last two labels'],
    ['https://{resource}.azure.com@evil.example/v1', 'host'],
    ['https://api.{region}.example/{nothing}/v1', 'nothing'],
    ['https://models.{region}/v1', 'label'],
    ['https://{resource}.co.uk/v1', 'the last three labels'],
    ['https://{resource}.com.au/v1', 'the last three labels'],
  ])('the file of the operator cannot name the address %s', base_url => {
    writeFileSync(operatorFile, JSON.stringify({ providers: [{ id: 'own-cloud', base_url }] }))
    expect(() => baseUrls({})).toThrow(/providers\[0\]\.base_url: expected/)
    writeFileSync(operatorFile, '{}')
  })

  test.each([
    '/model/anthropic.claude-sonnet-4-20250514-v1%3A0/invoke',
    '/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Aapplication-inference-profile%2Fabc/converse',
    '/openai/v1/chat/completions?beta=true&a=b%20c',
  ])('the path %s is signed as the SDK of AWS signs it, with the path encoded once more', async path => {
    const keys = { accessKeyId: 'AKIAEXAMPLEEXAMPLE', secretAccessKey: 'secret', sessionToken: 'session', endMs: Number.POSITIVE_INFINITY }
    const source = { current: keys, get: () => keys, renew: () => keys }
    const authoriser = new SigV4Authoriser({ service: 'bedrock', region: 'eu-west-1', keys: source, source: 'test' })
    const body = Buffer.from('{"messages":[{"role":"user","content":"ಕನ್ನಡ"}]}')
    const given = { 'content-type': 'application/json', accept: 'application/json', 'user-agent': 'x' }
    const { headers } = await authoriser.authorise(
      { method: 'POST', url: `https://bedrock-runtime.eu-west-1.amazonaws.com${path}`, headers: given, body },
      Date.now(),
    )
    const received = { method: 'POST', path, headers: { host: 'bedrock-runtime.eu-west-1.amazonaws.com', ...headers }, raw: body } as unknown as RecordedRequest
    expect(await isSignedWith(received, { secretKey: 'secret', token: 'session' })).toBe(true)
    expect(await isSignedWith({ ...received, path: `${path}x` }, { secretKey: 'secret', token: 'session' })).toBe(false)
    expect(headers).toMatchObject(given)
  })

  test.each(['bytes', 'a text'])('a long body, %s, is hashed in pieces, with turns of other calls between them, and once for two dials', async form => {
    const keys = { accessKeyId: 'AKIAEXAMPLEEXAMPLE', secretAccessKey: 'secret', endMs: Number.POSITIVE_INFINITY }
    const source = { current: keys, get: () => keys, renew: () => keys }
    const authoriser = new SigV4Authoriser({ service: 'bedrock', region: 'eu-west-1', keys: source, source: 'test' })
    // The first cut of the text would be inside a character.
    const text = `a${'😀'.repeat(400_000)}`
    const raw = Buffer.from(text)
    let turns = 0
    const inTurn = async <T>(work: () => T): Promise<T> => {
      turns++
      return work()
    }
    const host = 'bedrock-runtime.eu-west-1.amazonaws.com'
    const request = { method: 'POST' as const, url: `https://${host}/model/x/invoke`, headers: {}, body: form === 'bytes' ? raw : text, inTurn }
    for (const nowMs of [Date.now(), Date.now() + 1000]) {
      const { headers } = await authoriser.authorise(request, nowMs)
      const received = { method: 'POST', path: '/model/x/invoke', headers: { host, ...headers }, raw } as unknown as RecordedRequest
      expect(await isSignedWith(received, { secretKey: 'secret' })).toBe(true)
      expect(turns).toBe(Math.ceil(request.body.length / (256 * 1024)))
    }
    await authoriser.authorise({ ...request, body: '{}' }, Date.now())
    expect(turns).toBe(Math.ceil(request.body.length / (256 * 1024)))
  })
})
