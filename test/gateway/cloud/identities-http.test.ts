import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeProtectedHeader, importSPKI, jwtVerify } from 'jose'
import { OAuth2Server } from 'oauth2-mock-server'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { containerToken } from '../../harness/aws-servers.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { type AwsKeysServer, isSignedWith, refusalByAws, signatureIn, startAwsKeys, startTokenServer, type TokenServer } from '../../harness/cloud-servers.ts'
import { until } from '../../harness/until.ts'
import { type RecordedRequest, startUpstream, type UpstreamScript, type UpstreamServer } from '../../harness/upstream-server.ts'

const tenant = 'contoso.example'
const scope = 'https://ai.azure.com/.default'
const minuteMs = 60_000
const pkcs8 = { privateKeyEncoding: { type: 'pkcs8', format: 'pem' }, publicKeyEncoding: { type: 'spki', format: 'pem' } } as const

/** Returns a private key of that size, whose numbers are random: it takes no time to make, and a library reads it. */
function longKey(bits: number): string {
  const number = (bytes: number): string => {
    const made = randomBytes(bytes).fill(0xff, 0, 1)
    return made.fill(0x01, bytes - 1).toString('base64url')
  }
  const [whole, half] = [bits / 8, bits / 16]
  const parts = { n: number(whole), d: number(whole), p: number(half), q: number(half), dp: number(half), dq: number(half), qi: number(half) }
  const key = createPrivateKey({ format: 'jwk', key: { kty: 'RSA', e: 'AQAB', ...parts } })
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** Calls of models with credentials that expire: signatures of AWS, tokens of Google and of Entra. */
describe('credentials that expire', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-cloud-'))
  const environment = { ...process.env }
  const issuer = new OAuth2Server(undefined, undefined, { endpoints: { token: `/${tenant}/oauth2/v2.0/token` } })
  const entra = { valid: new Set<string>(), asked: [] as Record<string, string>[], refuses: false }
  const account = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const privateKey = account.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  let clock: MovableClock
  let aws: AwsKeysServer
  let google: TokenServer
  let cloud: UpstreamServer
  let app: TestApp
  let port: string

  const bearerIn = ({ headers }: RecordedRequest): string => String(headers.authorization ?? '').replace(/^Bearer /, '')
  const unauthorised: UpstreamScript = { status: 401, body: { error: { code: 401, status: 'UNAUTHENTICATED', message: 'expired' } } }
  /** Answers as each cloud does: only to valid credentials. The first segment of the path names the cloud. */
  const guarded = (request: RecordedRequest): UpstreamScript => {
    if (request.path.startsWith('/aws/')) return refusalByAws(request, aws.issued) ?? {}
    if (request.path.startsWith('/google/')) return google.valid.has(bearerIn(request)) ? {} : unauthorised
    if (request.path.startsWith('/entra/')) return entra.valid.has(bearerIn(request)) ? {} : unauthorised
    return {}
  }

  beforeAll(async () => {
    clock = movableClock()
    ;[aws, google, cloud] = await Promise.all([startAwsKeys(), startTokenServer(), startUpstream()])
    await issuer.issuer.keys.generate('RS256')
    await issuer.start(0, '127.0.0.1')
    issuer.service.on('beforeResponse', (reply: { body: Record<string, unknown>; statusCode: number }, request: { body: Record<string, string> }) => {
      entra.asked.push({ ...request.body })
      if (entra.refuses) Object.assign(reply, { statusCode: 401, body: { error: 'invalid_client' } })
      else entra.valid.add(String(reply.body['access_token']))
    })
    port = new URL(cloud.url).port
    const subject = join(folder, 'subject')
    const federated = join(folder, 'federated')
    const adc = join(folder, 'adc.json')
    writeFileSync(subject, 'subject-token-of-the-pod')
    writeFileSync(federated, 'federated-token-of-the-pod')
    const audience = '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/pod'
    const subject_token_type = 'urn:ietf:params:oauth:token-type:jwt'
    writeFileSync(
      adc,
      JSON.stringify({ type: 'external_account', audience, subject_token_type, token_url: `${google.url}/sts`, credential_source: { file: subject } }),
    )
    for (const name of Object.keys(process.env)) if (/^(AWS_|GOOGLE_|GCE_)/.test(name)) delete process.env[name]
    Object.assign(process.env, {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${aws.url}/container`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: containerToken,
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_CONFIG_FILE: join(folder, 'none'),
      AWS_SHARED_CREDENTIALS_FILE: join(folder, 'none'),
      GOOGLE_APPLICATION_CREDENTIALS: adc,
    })
    const row = (id: string, path: string, more: object) => ({
      id,
      base_url: `http://127.0.0.1:${port}/${path}/v1`,
      residency: 'global',
      models_path: null,
      ...more,
    })
    const route = (provider: string, more: object = {}) => ({ provider, upstream_model: 'deployed', input_inr_per_mtok: 10, output_inr_per_mtok: 40, ...more })
    app = await startApp({
      clock,
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        return {
          providers: [
            ...file.providers,
            row('runtime', 'aws/{region}', { identity: { kind: 'aws', service: 'bedrock' } }),
            row('own-google', 'google/{project}/{location}', {
              auth: 'identity',
              identity: { kind: 'google' },
              use_identity: true,
              values: { project: 'p-1', location: 'asia-south1' },
            }),
            row('foundry', 'entra/{resource}', { auth: 'api-key', identity: { kind: 'entra', scope } }),
          ],
          models: [
            ...file.models,
            { id: 'aws-chat', routes: [route('runtime')] },
            { id: 'google-chat', routes: [route('own-google')] },
            { id: 'entra-chat', routes: [route('foundry')] },
          ],
        }
      },
      env: {
        RUNTIME_REGION: 'ap-south-1',
        RUNTIME_IDENTITY: 'on',
        FOUNDRY_RESOURCE: 'operators',
        FOUNDRY_IDENTITY: 'on',
        AZURE_TENANT_ID: tenant,
        AZURE_CLIENT_ID: 'client-of-the-gateway',
        AZURE_FEDERATED_TOKEN_FILE: federated,
        ENTRA_LOGIN_URL: issuer.issuer.url ?? '',
        GOOGLE_TOKEN_URL: `${google.url}/token`,
        OUTBOUND_ALLOW: `127.0.0.1:${port}`,
      },
    })
  })
  afterAll(async () => {
    await app.stop()
    await Promise.all([aws.close(), google.close(), cloud.close(), issuer.stop()])
    for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
    Object.assign(process.env, environment)
    rmSync(folder, { recursive: true, force: true })
  })
  afterEach(() => cloud.reset())

  const chat = (model: string, more: object = {}, key?: string) =>
    app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'नमस्ते' }], ...more }, key === undefined ? {} : { token: key })
  const save = (provider: string, body: object, cookie: string) => app.call('PUT', `/me/byok/${provider}`, body, { cookie })
  const fetches = { 'aws-chat': () => aws.given.length, 'google-chat': () => google.asked.length, 'entra-chat': () => entra.asked.length }

  test('CLOUD-02 the AWS chain signs the bytes that go out, for the service of the row and the region of its address', async () => {
    cloud.script(guarded)
    expect(aws.given).toEqual([])
    const whole = await chat('aws-chat')
    expect([whole.status, whole.text]).toEqual([200, expect.stringContaining('upstream')])
    const streamed = await chat('aws-chat', { stream: true })
    expect(streamed.text).toContain('[DONE]')
    for (const request of cloud.requests) {
      const signature = signatureIn(request)
      expect(signature).toMatchObject({
        region: 'ap-south-1',
        service: 'bedrock',
        signed: ['content-type', 'host', 'x-amz-content-sha256', 'x-amz-date', 'x-amz-security-token'],
      })
      const keys = aws.issued.get(signature?.keyId ?? '')
      expect(await isSignedWith(request, keys as NonNullable<typeof keys>)).toBe(true)
      // The oracle can fail: another body has another signature.
      expect(await isSignedWith({ ...request, raw: Buffer.concat([request.raw, Buffer.from(' ')]) }, keys as NonNullable<typeof keys>)).toBe(false)
    }
    expect(aws.given).toEqual(['container'])
  })

  test('CLOUD-02 a workload of Google and a federated workload of Entra get tokens, and every call shares them', async () => {
    cloud.script(guarded)
    await Promise.all(Array.from({ length: 20 }, () => [chat('google-chat'), chat('entra-chat')]).flat())
    expect(cloud.requests).toHaveLength(40)
    expect(cloud.requests.filter(({ path }) => path === '/google/p-1/asia-south1/v1/chat/completions')).toHaveLength(20)
    expect(google.asked).toHaveLength(1)
    expect(google.asked[0]?.fields.get('subject_token')).toBe('subject-token-of-the-pod')
    expect(entra.asked).toEqual([
      {
        grant_type: 'client_credentials',
        client_id: 'client-of-the-gateway',
        scope,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: 'federated-token-of-the-pod',
      },
    ])
  })

  test.each(['aws-chat', 'google-chat', 'entra-chat'] as const)(
    'CLOUD-02 credentials of %s that end in mid-flight cost one refresh, and none of 100 calls fails',
    async model => {
      cloud.script(guarded)
      expect((await chat(model)).status).toBe(200)
      const before = fetches[model]()
      // The cloud withdraws what it has issued, so that all calls are refused that are under way.
      if (model === 'aws-chat') for (const [id, keys] of aws.issued) aws.issued.set(id, { ...keys, endMs: 0 })
      else (model === 'google-chat' ? google : entra).valid.clear()
      cloud.reset()
      cloud.script(guarded)
      cloud.hold()
      const calls = Array.from({ length: 100 }, (_, index) => chat(model, index % 2 === 0 ? {} : { stream: true }))
      await cloud.arrived(100)
      cloud.release()
      expect(new Set((await Promise.all(calls)).map(({ status, text }) => (status === 200 ? 200 : text)))).toEqual(new Set([200]))
      expect(fetches[model]() - before).toBe(1)
      expect(cloud.requests).toHaveLength(200)
    },
    20_000,
  )

  test('CLOUD-02 credentials are renewed in the background before their end, while calls use the old ones', async () => {
    cloud.script(guarded)
    const models = ['aws-chat', 'google-chat', 'entra-chat'] as const
    for (const model of models) await chat(model)
    const before = models.map(model => fetches[model]())
    const used = cloud.requests.map(({ headers }) => headers.authorization)
    clock.advance(56 * minuteMs)
    cloud.reset()
    cloud.script(guarded)
    for (const model of models) expect((await chat(model)).status).toBe(200)
    // The time is part of a signature of AWS, so only the key is compared.
    const keyOf = (text: string | undefined): string => (text ?? '').split('/')[0] ?? ''
    expect(cloud.requests.map(({ headers }) => keyOf(headers.authorization))).toEqual(used.map(keyOf))
    await until(() => models.every((model, index) => fetches[model]() === (before[index] ?? 0) + 1), 'one fetch for each identity')
    cloud.reset()
    cloud.script(guarded)
    await until(async () => {
      for (const model of ['aws-chat', 'google-chat']) expect((await chat(model)).status).toBe(200)
      return cloud.requests.slice(-2).every(({ headers }, index) => keyOf(headers.authorization) !== keyOf(used[index]))
    }, 'calls use the new credentials')
    expect(models.map(model => fetches[model]())).toEqual(before.map(count => count + 1))
    clock.advance(-56 * minuteMs)
  })

  test('CLOUD-02 an organisation signs with its own access key at its own place, and never with the identity of the gateway', async () => {
    cloud.script(() => ({}))
    const cookie = await app.signIn()
    const keys = { access_key_id: 'AKIAORGANISATION1', secret_access_key: 'secret-of-the-organisation' }
    const saved = await save('runtime', { credentials: keys, values: { region: 'eu-west-1' }, models: ['own-model'], always_use: true }, cookie)
    expect([saved.status, saved.json]).toEqual([200, expect.objectContaining({ mask: 'AKIAORGA…' })])
    cloud.reset()
    expect((await chat('aws-chat')).status).toBe(200)
    expect((await chat('runtime/own-model')).status).toBe(200)
    for (const request of cloud.requests) {
      expect(request.path).toBe('/aws/eu-west-1/v1/chat/completions')
      expect(signatureIn(request)).toMatchObject({ keyId: 'AKIAORGANISATION1', region: 'eu-west-1', service: 'bedrock' })
      expect(await isSignedWith(request, { secretKey: keys.secret_access_key })).toBe(true)
    }
    // A key in a header at a place of its own: no signature, although the operator has an identity for this provider.
    expect((await save('runtime', { key: 'bedrock-api-key-own', values: { region: 'us-east-1' }, always_use: true }, cookie)).status).toBe(200)
    cloud.reset()
    expect((await chat('aws-chat')).status).toBe(200)
    expect(cloud.requests[0]).toMatchObject({ path: '/aws/us-east-1/v1/chat/completions', headers: { authorization: 'Bearer bedrock-api-key-own' } })
    await app.call('DELETE', '/me/byok/runtime', undefined, { cookie })
  })

  test('a body above the size of a piece is signed as a short one, also when it is sent once more because the clocks differ', async () => {
    cloud.script(() => ({}))
    const cookie = await app.signIn()
    const keys = { access_key_id: 'AKIAORGANISATION2', secret_access_key: 'secret-of-the-long-body' }
    expect((await save('runtime', { credentials: keys, values: { region: 'eu-west-1' }, always_use: true }, cookie)).status).toBe(200)
    cloud.reset()
    const late = { 'x-amzn-errortype': 'InvalidSignatureException', date: new Date(clock.nowMs() + 10 * minuteMs).toUTCString() }
    cloud.script([{ status: 403, headers: late, body: { message: 'Signature expired' } }, {}])
    expect((await chat('aws-chat', { messages: [{ role: 'user', content: 'नमस्ते'.repeat(60_000) }] })).status).toBe(200)
    expect(cloud.requests).toHaveLength(2)
    expect(cloud.requests[0]?.raw.length).toBeGreaterThan(1024 * 1024)
    for (const request of cloud.requests) expect(await isSignedWith(request, { secretKey: keys.secret_access_key })).toBe(true)
    await app.call('DELETE', '/me/byok/runtime', undefined, { cookie })
  })

  test("CLOUD-02 an organisation's service account and client secret get tokens at the operator's token endpoints", async () => {
    cloud.script(guarded)
    const cookie = await app.signIn()
    const file = {
      type: 'service_account',
      project_id: 'own-project',
      private_key_id: 'key-7',
      private_key: privateKey,
      client_email: 'caller@own-project.iam.gserviceaccount.com',
      client_id: '117',
      auth_uri: 'https://accounts.google.com/o/oauth2/auth',
      token_uri: 'https://oauth2.googleapis.com/token',
      auth_provider_x509_cert_url: 'https://www.googleapis.com/oauth2/v1/certs',
      client_x509_cert_url: 'https://www.googleapis.com/robot/v1/metadata/x509/caller%40own-project.iam.gserviceaccount.com',
      universe_domain: 'googleapis.com',
    }
    google.asked.length = 0
    const saved = await save('own-google', { credentials: file, values: { project: 'own-project', location: 'europe-west4' }, always_use: true }, cookie)
    expect([saved.status, saved.json.mask]).toEqual([200, file.client_email])
    expect((await chat('google-chat')).status).toBe(200)
    expect(cloud.requests.at(-1)?.path).toBe('/google/own-project/europe-west4/v1/chat/completions')
    expect(google.asked.map(({ path }) => path)).toEqual(['/token'])
    const assertion = google.asked[0]?.fields.get('assertion') ?? ''
    const spki = account.publicKey.export({ type: 'spki', format: 'pem' }).toString()
    const { payload } = await jwtVerify(assertion, await importSPKI(spki, 'RS256'), { issuer: file.client_email, audience: `${google.url}/token` })
    expect(payload['scope']).toBe('https://www.googleapis.com/auth/cloud-platform')
    expect(decodeProtectedHeader(assertion)).toMatchObject({ alg: 'RS256', kid: 'key-7' })

    entra.asked.length = 0
    const secret = { tenant_id: tenant, client_id: 'app-of-the-organisation', client_secret: 'very~secret.Value' }
    expect((await save('foundry', { credentials: secret, values: { resource: 'own' }, always_use: true }, cookie)).status).toBe(200)
    expect((await chat('entra-chat')).status).toBe(200)
    expect(cloud.requests.at(-1)?.path).toBe('/entra/own/v1/chat/completions')
    expect(entra.asked).toEqual([{ grant_type: 'client_credentials', client_id: secret.client_id, client_secret: secret.client_secret, scope }])
    entra.refuses = true
    const wrong = await save('foundry', { credentials: { ...secret, client_secret: 'wrong' }, values: { resource: 'own' } }, cookie)
    entra.refuses = false
    expect([wrong.status, wrong.json.error.code]).toEqual([400, 'bad_key'])

    const kept = await app.dump()
    for (const text of [secret.client_secret, 'PRIVATE KEY', 'secret-of-the-organisation', 'of-the-cloud']) {
      expect(kept).not.toContain(text)
      expect(app.logLines.join('\n')).not.toContain(text)
    }
    for (const id of ['own-google', 'foundry']) await app.call('DELETE', `/me/byok/${id}`, undefined, { cookie })
  })

  test('CLOUD-02 credentials of an organisation that name an address, a file or a command are refused, and nothing is asked', async () => {
    const cookie = await app.signIn()
    const asked = [aws.given.length, google.asked.length, entra.asked.length]
    const file = { type: 'service_account', client_email: 'caller@p.iam.gserviceaccount.com', private_key: privateKey }
    const place = { project: 'p', location: 'europe-west4' }
    const wrong: [string, object, object][] = [
      ['own-google', { ...file, token_uri: 'http://169.254.169.254/token' }, place],
      ['own-google', { ...file, token_uri: 'https://oauth2.googleapis.com.evil.example/token' }, place],
      ['own-google', { ...file, universe_domain: 'evil.example' }, place],
      ['own-google', { ...file, type: 'external_account', credential_source: '/etc/passwd' }, place],
      ['own-google', { ...file, type: 'authorized_user' }, place],
      ['own-google', { ...file, credential_source: 'http://127.0.0.1/' }, place],
      ['own-google', { ...file, private_key: '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----' }, place],
      ['own-google', { ...file, private_key: generateKeyPairSync('rsa', { modulusLength: 1024, ...pkcs8 }).privateKey }, place],
      ['own-google', { ...file, private_key: longKey(5120) }, place],
      ['own-google', { ...file, private_key: longKey(8192) }, place],
      ['own-google', { client_email: file.client_email }, place],
      ['runtime', { access_key_id: 'AKIAORGANISATION1', secret_access_key: 'secret-of-the-organisation', credential_process: 'id' }, { region: 'eu-west-1' }],
      ['runtime', { role_arn: 'arn:aws:iam::1:role/x', web_identity_token_file: '/etc/passwd' }, { region: 'eu-west-1' }],
      ['foundry', { tenant_id: tenant, client_id: 'a', client_secret: 'b', authority_host: 'http://127.0.0.1/' }, { resource: 'own' }],
      ['foundry', { tenant_id: '../../evil', client_id: 'a', client_secret: 'b' }, { resource: 'own' }],
    ]
    for (const [provider, credentials, values] of wrong) {
      const reply = await save(provider, { credentials, values }, cookie)
      expect([provider, credentials, reply.status, reply.json.error.code]).toEqual([provider, credentials, 400, 'bad_key'])
      expect(reply.text).not.toContain('PRIVATE KEY-----')
    }
    expect((await save('own-google', { key: 'a-plain-key', values: place }, cookie)).json.error.code).toBe('bad_key')
    expect((await save('runtime', { key: JSON.stringify({ a: 1 }), values: { region: 'eu-west-1' } }, cookie)).json.error.code).toBe('bad_key')
    const keys = { access_key_id: 'AKIAORGANISATION1', secret_access_key: 'secret-of-the-organisation' }
    // A label that is no region would be another host of the cloud.
    for (const region of ['s3', 'evil-bucket.s3', 'EU-WEST-1', 'eu-west']) {
      const reply = await save('runtime', { credentials: keys, values: { region } }, cookie)
      expect([region, reply.status, reply.json.error.code]).toEqual([region, 400, 'bad_request'])
    }
    expect((await save('groq', { credentials: { a: 'b' } }, cookie)).json.error.code).toBe('bad_request')
    expect([aws.given.length, google.asked.length, entra.asked.length]).toEqual(asked)
    expect(cloud.requests).toEqual([])
  })

  test('CLOUD-02 a refusal of the cloud does not show the session token, and the next route serves', async () => {
    cloud.script(request => ({ ...refusalByAws(request, new Map()), headers: { 'x-amzn-errortype': 'AccessDeniedException:' } }))
    const reply = await chat('aws-chat')
    expect(reply.status).toBe(502)
    expect(reply.json.error.message).toContain('runtime answered 403: AccessDeniedException')
    expect(reply.text + app.logLines.join('\n')).not.toContain('session+token')
    cloud.script(request => refusalByAws(request, new Map()) ?? {})
    const served = await chat('aws-chat', { fallbacks: ['alpha-only'] })
    expect([served.status, served.headers.get('x-br-provider')]).toEqual([200, 'alpha'])
  })

  test('CLOUD-02 the doctor says where the credentials come from and when they end', async () => {
    const findings = await app.gateway.app.doctor()
    const said = Object.fromEntries(findings.map(({ what, state, detail }) => [what, `${state}: ${detail}`]))
    expect(said['identity for runtime']).toMatch(/^ok: AWS chain, ends \d{4}-/)
    expect(said['identity for own-google']).toMatch(/^ok: Google application default credentials, ends \d{4}-/)
    expect(said['identity for foundry']).toMatch(/^ok: Entra federated token, ends \d{4}-/)
  })
})
