/** Memory on AWS without a key in the database: every way in which the gateway can get an identity, and the S3 options of an organisation. */
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import type { LookupFunction } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply, until } from '../harness/app.ts'
import { type AwsServers, containerToken, ssoToken, startAwsServers } from '../harness/aws-servers.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'

const bucket = 'memory'
const region = 'eu-west-1'
const o = (key: string): string => `/v1/me/memory/o?key=${encodeURIComponent(key)}`

let s3: S3TestServer
let aws: AwsServers
beforeAll(async () => {
  s3 = await startS3Server(bucket)
  aws = await startAwsServers(s3)
})
afterAll(async () => {
  await aws?.close()
  await s3?.close()
})
afterEach(() => {
  s3.faults.region = null
  aws.lifeMs = 3_600_000
  aws.given.length = 0
  aws.asked.length = 0
})

const roleArn = 'arn:aws:iam::123456789012:role/brigade'

/** Makes a home folder with AWS configuration, a cached sign-in and a web identity. */
function awsHome(): string {
  const home = mkdtempSync(join(tmpdir(), 'brigade-aws-'))
  mkdirSync(join(home, '.aws/sso/cache'), { recursive: true })
  const sso = { start: 'https://portal.example.com/start', session: 'portal' }
  writeFileSync(
    join(home, '.aws/config'),
    [
      '[profile keys]',
      `aws_access_key_id = ${s3.accessKey}`,
      `aws_secret_access_key = ${s3.secretKey}`,
      '[profile assumed]',
      `role_arn = ${roleArn}`,
      'source_profile = keys',
      'region = eu-west-1',
      '[profile sso]',
      `sso_session = ${sso.session}`,
      'sso_account_id = 123456789012',
      'sso_role_name = Brigade',
      `[sso-session ${sso.session}]`,
      `sso_start_url = ${sso.start}`,
      'sso_region = eu-west-1',
      'sso_registration_scopes = sso:account:access',
    ].join('\n'),
  )
  const name = createHash('sha1').update(sso.session).digest('hex')
  const expiresAt = new Date(Date.now() + 8 * 3_600_000).toISOString()
  writeFileSync(join(home, `.aws/sso/cache/${name}.json`), JSON.stringify({ startUrl: sso.start, region: 'eu-west-1', accessToken: ssoToken, expiresAt }))
  writeFileSync(join(home, 'web-identity'), 'a.web.token')
  return home
}

const ways: readonly [what: string, env: (home: string) => Record<string, string>, gave: string | null][] = [
  ['keys in its environment', () => ({ AWS_ACCESS_KEY_ID: s3.accessKey, AWS_SECRET_ACCESS_KEY: s3.secretKey }), null],
  ['the role of its instance (IMDSv2)', () => ({ AWS_EC2_METADATA_SERVICE_ENDPOINT: aws.url }), 'instance'],
  [
    'the role of its container (ECS, EKS Pod Identity)',
    () => ({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${aws.url}/container`, AWS_CONTAINER_AUTHORIZATION_TOKEN: containerToken }),
    'container',
  ],
  [
    'a web identity (IRSA)',
    home => ({ AWS_WEB_IDENTITY_TOKEN_FILE: join(home, 'web-identity'), AWS_ROLE_ARN: roleArn, AWS_ENDPOINT_URL_STS: aws.url, AWS_REGION: region }),
    'web-identity',
  ],
  ['a profile', () => ({ AWS_PROFILE: 'keys' }), null],
  ['a profile that assumes a role', () => ({ AWS_PROFILE: 'assumed', AWS_ENDPOINT_URL_STS: aws.url, AWS_REGION: region }), 'assume-role'],
  ['single sign-on', () => ({ AWS_PROFILE: 'sso', AWS_ENDPOINT_URL_SSO: aws.url }), 'sso'],
]

describe('EDGE-19 the identity of the gateway', () => {
  test.each(ways)(
    'EDGE-19 memory works with %s, and the database contains no key',
    async (_what, env, gave) => {
      const home = awsHome()
      const app = await startApp({ env: { MEMORY_ROLE_BUCKETS: `*:${bucket}@${region}`, MEMORY_ROLE_ENDPOINT: s3.endpoint } })
      const former = { ...process.env }
      try {
        for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
        Object.assign(process.env, { HOME: home, AWS_CONFIG_FILE: join(home, '.aws/config'), AWS_SHARED_CREDENTIALS_FILE: join(home, 'none'), ...env(home) })
        s3.faults.region = region
        const put = await app.call('PUT', '/v1/me/memory-store', { credentials: 'gateway', bucket })
        expect([put.status, put.json]).toEqual([200, { ok: true }])
        expect((await app.call('PUT', o('agents/a'), 'kept')).status).toBe(200)
        expect((await app.call('GET', o('agents/a'))).text).toBe('kept')
        expect((await app.call('GET', '/v1/me/memory/list?prefix=agents/')).json.keys).toHaveLength(1)
        expect(new Set(aws.given)).toEqual(new Set(gave === null ? [] : [gave]))
        const view = (await app.call('GET', '/v1/me/memory-store')).json
        expect(view).toMatchObject({ credentials: 'gateway', bucket, region, access_key_masked: null, sse: 'bucket' })
        // The endpoint is an address of the operator's own network, so it is not shown.
        expect(view).not.toHaveProperty('endpoint')
        for (const body of [{ sse: 'aws:kms' }, { kms_key_id: 'arn:aws:kms:eu-west-1:123456789012:key/ours' }, { quota_mb: 10_241 }])
          expect((await app.call('PUT', '/v1/me/memory-store', { credentials: 'gateway', bucket, ...body })).status, JSON.stringify(body)).toBe(400)
        const dump = await app.dump()
        for (const { secretKey, token } of s3.sessions.values()) for (const secret of [secretKey, token]) expect(dump).not.toContain(secret)
        expect(dump).not.toContain(s3.secretKey)
      } finally {
        for (const name of Object.keys(process.env)) if (!(name in former)) delete process.env[name]
        Object.assign(process.env, former)
        await app.stop()
      }
    },
    60_000,
  )
})

describe('EDGE-19 the S3 options of an organisation', () => {
  let app: TestApp
  let port = ''
  const former = { ...process.env }
  /** Resolves every name to this machine, because the test store has no name in the DNS. */
  const here: LookupFunction = (_host, options, callback) =>
    options.all ? callback(null, [{ address: '127.0.0.1', family: 4 }]) : callback(null, '127.0.0.1', 4)
  const named = (more: object = {}) => ({ endpoint: `http://s3.test:${port}`, bucket, access_key: s3.accessKey, secret_key: s3.secretKey, ...more })
  const configure = (token: string, body: object): Promise<TestReply> => app.call('PUT', '/v1/me/memory-store', body, { token })
  const view = async (token: string) => (await app.call('GET', '/v1/me/memory-store', undefined, { token })).json

  beforeAll(async () => {
    port = s3.hostPort.split(':')[1] ?? ''
    for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
    Object.assign(process.env, {
      AWS_EC2_METADATA_SERVICE_ENDPOINT: aws.url,
      AWS_ENDPOINT_URL_STS: aws.url,
      AWS_CONFIG_FILE: '/none',
      AWS_SHARED_CREDENTIALS_FILE: '/none',
    })
    app = await startApp({
      lookup: here,
      env: {
        OUTBOUND_ALLOW: `s3.test:${port},${bucket}.s3.test:${port}`,
        MEMORY_ROLE_BUCKETS: `999999:${bucket}@${region}`,
        MEMORY_ROLE_ENDPOINT: s3.endpoint,
      },
    })
  }, 60_000)
  afterAll(async () => {
    for (const name of Object.keys(process.env)) if (!(name in former)) delete process.env[name]
    Object.assign(process.env, former)
    await app?.stop()
  })

  test('EDGE-19 the gateway does not sign with its own identity for a bucket that the operator has not named for the organisation', async () => {
    for (const body of [
      { credentials: 'gateway', bucket },
      { credentials: 'gateway', bucket: 'elsewhere', endpoint: `http://s3.test:${port}` },
    ]) {
      const refused = await configure(app.key, body)
      expect([refused.status, refused.json.error.code, refused.json.error.message]).toEqual([400, 'bad_request', expect.stringMatching(/MEMORY_ROLE_BUCKETS/)])
    }
    expect(aws.given).toEqual([])
  })

  test('EDGE-19 the gateway assumes a role of the organisation with an external id that it made, and renews the keys before calls fail', async () => {
    const org = await app.otherOrg('Role Owner')
    aws.externalIds.set(roleArn, 'set by nobody yet')
    const body = { endpoint: `http://s3.test:${port}`, bucket, role_arn: roleArn }
    const refused = await configure(org.key, body)
    const externalId = /external id (\S+)\./.exec(refused.json.error.message)?.[1] ?? ''
    expect([refused.status, refused.json.error.code, externalId]).toEqual([400, 'unavailable', expect.stringMatching(new RegExp(`^brigade-${org.orgId}-`))])
    aws.externalIds.set(roleArn, externalId)
    aws.lifeMs = 1_500
    expect((await configure(org.key, body)).status).toBe(200)
    expect(await view(org.key)).toMatchObject({ credentials: 'role', role_arn: roleArn, external_id: externalId, access_key_masked: null })
    const assumed = (): number => aws.given.filter(source => source === 'assume-role').length
    const before = assumed()
    // Calls continue while several sets of keys expire.
    await until(async () => {
      const written = await app.call('PUT', o('agents/role'), 'x', { token: org.key })
      const read = await app.call('GET', o('agents/role'), undefined, { token: org.key })
      expect([written.status, read.status]).toEqual([200, 200])
      return assumed() >= before + 4
    }, 30_000)
    expect(aws.asked.at(-1)?.get('RoleSessionName')).toBe(`brigade-org-${org.orgId}`)
    // For another organisation that names the same role, the gateway uses another external id.
    const stranger = await app.otherOrg('Stranger')
    expect((await configure(stranger.key, body)).json.error.message).toMatch(new RegExp(`external id brigade-${stranger.orgId}-`))
  }, 60_000)

  test('EDGE-19 the bucket is in the host or in the path, as configured, and a host name with the bucket is also refused at an internal address', async () => {
    for (const [addressing, host] of [
      ['virtual', `${bucket}.s3.test:${port}`],
      ['path', `s3.test:${port}`],
      ['auto', `s3.test:${port}`],
    ]) {
      const org = await app.otherOrg(`At ${addressing}`)
      const from = s3.requests.length
      expect((await configure(org.key, named({ addressing }))).status).toBe(200)
      expect((await app.call('PUT', o('agents/a b'), 'x', { token: org.key })).status).toBe(200)
      expect((await app.call('GET', '/v1/me/memory/list', undefined, { token: org.key })).json.keys).toHaveLength(1)
      expect(new Set(s3.requests.slice(from).map(({ headers }) => headers.host))).toEqual(new Set([host]))
    }
    const refused = await configure((await app.otherOrg('Inside')).key, named({ addressing: 'virtual', bucket: 'other' }))
    expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringMatching(new RegExp(`other\\.s3\\.test:${port} in OUTBOUND_ALLOW`))])
  }, 60_000)

  test('EDGE-19 the gateway learns the region of the bucket from the store, for single objects and for lists, and remembers it', async () => {
    const org = await app.otherOrg('Elsewhere')
    s3.faults.region = 'ap-south-1'
    expect((await configure(org.key, named({ region: 'us-east-1' }))).status).toBe(200)
    expect(await view(org.key)).toMatchObject({ region: 'ap-south-1' })
    s3.faults.region = 'eu-north-1'
    expect((await app.call('PUT', o('agents/moved'), 'x', { token: org.key })).status).toBe(200)
    expect((await app.call('GET', '/v1/me/memory/list', undefined, { token: org.key })).json.keys).toHaveLength(1)
  })

  test('EDGE-19 with SSE-KMS every write and copy names the KMS key, and conditions work although etags are not hashes', async () => {
    const org = await app.otherOrg('Kms')
    const kmsKeyId = 'arn:aws:kms:eu-west-1:123456789012:key/abc'
    expect((await configure(org.key, named({ sse: 'aws:kms', kms_key_id: kmsKeyId }))).status).toBe(200)
    const write = (text: string, headers: Record<string, string> = {}) => app.call('PUT', o('agents/sealed'), text, { token: org.key, headers })
    const first = await write('one')
    const etag = first.headers.get('etag') ?? ''
    expect((await write('two', { 'if-match': etag })).status).toBe(200)
    expect((await write('three', { 'if-match': etag })).status).toBe(412)
    expect((await write('three', { 'if-match': `"sha256:${createHash('sha256').update('two').digest('hex')}"` })).status).toBe(200)
    const kept = [...s3.objects].filter(([key]) => key.startsWith(`org-${org.orgId}/`))
    // These are the object and the versions that were copied from it.
    expect(kept.length).toBeGreaterThanOrEqual(3)
    for (const [, object] of kept) expect(object.kmsKeyId).toBe(kmsKeyId)
    expect((await app.call('POST', '/v1/me/memory/reconcile', undefined, { token: org.key })).json).toMatchObject({ added: 0, changed: 0, removed: 0 })
    expect(await view(org.key)).toMatchObject({ sse: 'aws:kms', kms_key_id: kmsKeyId })
  })
})
