import { generateKeyPairSync } from 'node:crypto'
import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk'
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk'
import { BedrockRuntimeClient, InvokeModelCommand, InvokeModelWithResponseStreamCommand } from '@aws-sdk/client-bedrock-runtime'
import { LLMock } from '@copilotkit/aimock'
import { GoogleGenAI } from '@google/genai'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type CloudRequest, type CloudServer, cloudKey, startCloudServer } from '../../harness/cloud-server.ts'
import { isSignedWith, signatureIn, startTokenServer, type TokenServer } from '../../harness/cloud-servers.ts'
import type { RecordedRequest } from '../../harness/upstream-server.ts'
import { usageRows } from '../../harness/usage-rows.ts'

/** Each vendor's own SDK makes a request to the test server. The gateway must send the same one. */

const price = { input_inr_per_mtok: 10, output_inr_per_mtok: 40, source: 'test', as_of: '2026-01-01' }
const ids = {
  plain: 'anthropic.claude-3-haiku-20240307-v1:0',
  profile: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
  arn: 'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3',
}
const body = { max_tokens: 4000, messages: [{ role: 'user' as const, content: 'Hello there' }], system: 'Be brief.', stop_sequences: ['END'] }
const region = 'us-east-1'

let cloud: CloudServer
let mock: LLMock
let tokens: TokenServer
let app: TestApp
const awsKeys = { keyId: 'AKIAIOSFODNN7EXAMPLE', secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' }

beforeAll(async () => {
  // The chain of AWS finds these keys first, and looks nowhere else.
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) vi.stubEnv(name, undefined)
  vi.stubEnv('AWS_ACCESS_KEY_ID', awsKeys.keyId)
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', awsKeys.secretKey)
  ;[cloud, tokens] = await Promise.all([startCloudServer(), startTokenServer()])
  mock = new LLMock({ port: 0, logLevel: 'silent' })
  await mock.start()
  mock.onMessage('Hello there', { content: 'An independent answer.', usage: { input_tokens: 11, output_tokens: 4, prompt_tokens: 11, completion_tokens: 4 } })
  const model = (id: string, route: object) => ({ id, kind: 'chat', context_length: 200_000, max_output_tokens: 8192, routes: [{ ...price, ...route }] })
  const place = (url: string) => `${url}/v1/projects/acme/locations/us-east5`
  const row = { base_url: cloud.url, cloud: 'bedrock-invoke', residency: 'global', auth: 'identity' }
  app = await startApp({
    env: {
      ...Object.fromEntries(['BEDROCK', 'GVERTEX', 'MOCKBEDROCK', 'MOCKVERTEX'].map(name => [`${name}_API_KEY`, cloudKey])),
      SIGNED_IDENTITY: 'on',
      GOOGLE_TOKEN_URL: `${tokens.url}/token`,
    },
    operatorFile: () => ({
      providers: [
        { id: 'bedrock', base_url: cloud.url, cloud: 'bedrock-invoke', residency: 'global' },
        { id: 'gvertex', base_url: place(cloud.url), cloud: 'vertex', residency: 'global' },
        { ...row, id: 'signed', values: { region }, identity: { kind: 'aws', service: 'bedrock' } },
        { ...row, id: 'granted', base_url: place(cloud.url), cloud: 'vertex', identity: { kind: 'google' } },
        { id: 'mockbedrock', base_url: mock.url, cloud: 'bedrock-invoke', residency: 'global' },
        { id: 'mockvertex', base_url: place(mock.url), cloud: 'vertex', dialect: 'gemini', residency: 'global' },
      ],
      models: [
        ...Object.entries(ids).map(([name, upstream_model]) => model(name, { provider: 'bedrock', upstream_model })),
        ...Object.entries(ids).map(([name, upstream_model]) => model(`signed-${name}`, { provider: 'signed', upstream_model })),
        model('granted-claude', { provider: 'granted', upstream_model: 'claude-sonnet-4-5@20250929' }),
        model('granted-gemini', { provider: 'granted', dialect: 'gemini', upstream_model: 'gemini-2.5-flash' }),
        model('vertex', { provider: 'gvertex', upstream_model: 'claude-sonnet-4-5@20250929' }),
        model('gemini', { provider: 'gvertex', dialect: 'gemini', upstream_model: 'gemini-2.5-flash' }),
        model('mock-claude', { provider: 'mockbedrock', upstream_model: ids.plain }),
        model('mock-gemini', { provider: 'mockvertex', upstream_model: 'gemini-2.5-flash' }),
      ],
    }),
  })
})
afterAll(async () => {
  await app.stop()
  await Promise.all([mock.stop(), cloud.close(), tokens.close()])
  vi.unstubAllEnvs()
})
beforeEach(() => {
  cloud.requests.length = 0
  cloud.accepts = ({ headers }) => headers.authorization === `Bearer ${cloudKey}`
})

async function sentBy(call: () => unknown): Promise<CloudRequest> {
  cloud.requests.length = 0
  await call()
  const [request] = cloud.requests
  if (request === undefined) throw new Error('no request arrived')
  return request
}
const byGateway = (model: string, more: object = {}, headers: Record<string, string> = {}) =>
  sentBy(async () => {
    const reply = await app.call('POST', '/v1/messages?beta=true', { model, ...body, ...more }, { headers })
    expect(reply.status, reply.text).toBe(200)
  })

test("CLOUD-03 the path and the body are those of Anthropic's SDK for Bedrock, with betas, whole and streamed", async () => {
  const sdk = new AnthropicBedrock({ baseURL: cloud.url, apiKey: cloudKey, awsRegion: region, maxRetries: 0 })
  const betas = ['interleaved-thinking-2025-05-14']
  // The SDK writes the version of the API that it was made for, unless the body names the version of Bedrock.
  const version = { anthropic_version: 'bedrock-2023-05-31' }
  for (const [name, id] of Object.entries(ids))
    for (const stream of [false, true]) {
      const theirs = await sentBy(() => sdk.beta.messages.create({ ...body, ...version, model: id, betas, stream }))
      const ours = await byGateway(name, { stream }, { 'anthropic-beta': betas.join(',') })
      expect(decodeURIComponent(ours.path)).toBe(decodeURIComponent(theirs.path))
      expect(ours.json).toEqual(theirs.json)
      expect(ours.headers.authorization).toBe(theirs.headers.authorization)
      expect([ours.headers['anthropic-version'], ours.headers['anthropic-beta']]).toEqual([theirs.headers['anthropic-version'], undefined])
    }
})

test("CLOUD-06 case 1: an id with a colon and an ARN with a slash are encoded as the AWS client encodes them, and it reads the test server's frames", async () => {
  const aws = new BedrockRuntimeClient({
    endpoint: cloud.url,
    region,
    token: { token: cloudKey },
    authSchemePreference: ['httpBearerAuth'],
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  })
  const text = JSON.stringify({ ...body, anthropic_version: 'bedrock-2023-05-31' })
  for (const [name, modelId] of Object.entries(ids)) {
    const whole = await sentBy(() => aws.send(new InvokeModelCommand({ modelId, body: text, contentType: 'application/json' })))
    expect((await byGateway(name)).path).toBe(whole.path)
    const names: string[] = []
    const streamed = await sentBy(async () => {
      const reply = await aws.send(new InvokeModelWithResponseStreamCommand({ modelId, body: text, contentType: 'application/json' }))
      for await (const event of reply.body ?? []) names.push((JSON.parse(Buffer.from(event.chunk?.bytes ?? []).toString()) as { type: string }).type)
    })
    expect((await byGateway(name, { stream: true })).path).toBe(streamed.path)
    expect([names[0], names.at(-1)]).toEqual(['message_start', 'message_stop'])
  }
  aws.destroy()
})

test("CLOUD-03 the path and the body are those of Anthropic's SDK for Vertex, with betas, whole and streamed", async () => {
  const authClient = { projectId: 'acme', getRequestHeaders: () => Promise.resolve(new Headers({ authorization: `Bearer ${cloudKey}` })) }
  const sdk = new AnthropicVertex({ baseURL: `${cloud.url}/v1`, region: 'us-east5', projectId: 'acme', authClient: authClient as never, maxRetries: 0 })
  const betas = ['interleaved-thinking-2025-05-14']
  const version = { anthropic_version: 'vertex-2023-10-16' }
  for (const stream of [false, true]) {
    const theirs = await sentBy(() => sdk.beta.messages.create({ ...body, ...version, model: 'claude-sonnet-4-5@20250929', betas, stream }))
    const ours = await byGateway('vertex', { stream }, { 'anthropic-beta': betas.join(',') })
    expect(ours.path).toBe(theirs.path)
    const { stream: theirStream, ...theirBody } = theirs.json
    const { stream: ourStream, ...ourBody } = ours.json
    expect([ourBody, ourStream ?? false]).toEqual([theirBody, theirStream ?? false])
    for (const name of ['authorization', 'anthropic-beta', 'anthropic-version']) expect(ours.headers[name], name).toBe(theirs.headers[name])
  }
})

test("CLOUD-04 the path and the body are those of Google's SDK for Vertex, whole and streamed", async () => {
  const sdk = new GoogleGenAI({
    vertexai: true,
    project: 'acme',
    location: 'us-east5',
    googleAuthOptions: {
      authClient: { getRequestHeaders: () => Promise.resolve(new Headers({ authorization: `Bearer ${cloudKey}` })), request: fetch } as never,
    },
    httpOptions: { baseUrl: cloud.url, apiVersion: 'v1' },
  })
  const request = {
    model: 'gemini-2.5-flash',
    contents: [{ role: 'user', parts: [{ text: 'Hello there' }] }],
    config: { systemInstruction: { parts: [{ text: 'Be brief.' }] }, maxOutputTokens: 4000, stopSequences: ['END'] },
  }
  for (const stream of [false, true]) {
    const theirs = await sentBy(async () => {
      if (!stream) return sdk.models.generateContent(request)
      for await (const _part of await sdk.models.generateContentStream(request));
    })
    const ours = await byGateway('gemini', { stream })
    expect(ours.path).toBe(theirs.path)
    expect(ours.json).toEqual(theirs.json)
    expect(ours.headers.authorization).toBe(theirs.headers.authorization)
  }
})

test('CLOUD-03 CLOUD-04 an independent server of the clouds understands the requests, and its answers are read and charged', async () => {
  for (const model of ['mock-claude', 'mock-gemini'])
    for (const path of ['/v1/messages', '/v1/chat/completions']) {
      const reply = await app.call('POST', path, { ...body, system: undefined, stop_sequences: undefined, model })
      expect([reply.status, reply.text.includes('An independent answer.')], reply.text).toEqual([200, true])
      expect(reply.headers.get('x-br-cost-inr')).not.toBe('0')
    }
  const streamed = await app.call('POST', '/v1/chat/completions', { model: 'mock-gemini', messages: body.messages, stream: true })
  expect(streamed.text).toContain('[DONE]')
})

test('CLOUD-03 CLOUD-06 case 1: signatures of AWS hold for every id, whole and streamed, as those of the SDK of Anthropic do', async () => {
  cloud.accepts = request => isSignedWith(request as unknown as RecordedRequest, awsKeys)
  const [awsAccessKey, awsSecretKey] = [awsKeys.keyId, awsKeys.secretKey]
  const sdk = new AnthropicBedrock({ baseURL: cloud.url, awsRegion: region, awsAccessKey, awsSecretKey, maxRetries: 0 })
  const version = { anthropic_version: 'bedrock-2023-05-31' }
  for (const [name, id] of Object.entries(ids))
    for (const stream of [false, true]) {
      const theirs = await sentBy(() => sdk.messages.create({ ...body, ...version, model: id, stream }))
      const ours = await byGateway(`signed-${name}`, { stream })
      const [signed, given] = [signatureIn(ours), signatureIn(theirs)]
      expect([signed?.keyId, signed?.region, signed?.service]).toEqual([given?.keyId, given?.region, given?.service])
      expect([decodeURIComponent(ours.path), ours.json]).toEqual([decodeURIComponent(theirs.path), theirs.json])
    }
  const chatted = await app.call('POST', '/v1/chat/completions', { model: 'signed-arn', messages: body.messages, stream: true })
  expect([chatted.status, chatted.text.includes('[DONE]')]).toEqual([200, true])
  expect((await usageRows(app))[0]).toMatchObject({ provider: 'signed', outcome: 'ok', estimated: false })
  cloud.accepts = request => isSignedWith(request as unknown as RecordedRequest, { secretKey: 'another' })
  const refused = await app.call('POST', '/v1/messages', { model: 'signed-plain', ...body })
  expect([refused.status, refused.json.error.code]).toEqual([502, 'all_routes_failed'])
})

test('CLOUD-03 CLOUD-04 the service account of an organisation is exchanged for tokens, with which both kinds of models are called', async () => {
  cloud.accepts = ({ headers }) => tokens.valid.has(String(headers.authorization).replace('Bearer ', ''))
  const private_key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const credentials = { type: 'service_account', client_email: 'svc@acme.iam.gserviceaccount.com', private_key }
  const saved = await app.call('PUT', '/me/byok/granted', { credentials }, { cookie: await app.signIn() })
  expect(saved.status, saved.text).toBe(200)
  cloud.requests.length = 0
  for (const model of ['granted-claude', 'granted-gemini'])
    for (const stream of [false, true]) {
      const reply = await app.call('POST', '/v1/messages', { model, ...body, stream })
      expect([reply.status, reply.text.includes('simulated')], reply.text).toEqual([200, true])
    }
  expect(new Set(cloud.requests.map(({ headers }) => headers.authorization)).size).toBe(1)
  expect((await usageRows(app))[0]).toMatchObject({ provider: 'granted', byok: true, outcome: 'ok' })
})
