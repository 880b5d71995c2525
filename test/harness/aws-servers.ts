/**
 * One server for all sources of AWS identities: instance metadata (version 2 only), the credentials address of containers, STS and the portal of single
 * sign-on. The S3 test server accepts the keys that it issues, which expire after `lifeMs`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { S3TestServer } from './s3-server.ts'

export interface AwsServers {
  readonly url: string
  /** The lifetime of keys that are issued from now on. */
  lifeMs: number
  /** The sources that issued keys, in order: instance, container, sso, web-identity, assume-role. */
  readonly given: string[]
  /** The requests to STS, newest last. */
  readonly asked: URLSearchParams[]
  /** External ids by role. STS issues keys for such a role only with the right external id. Other roles need none. */
  readonly externalIds: Map<string, string>
  close(): Promise<void>
}

export const containerToken = 'container-authorization'
export const ssoToken = 'sso-access-token'
const metadataToken = 'metadata-session-token'

export async function startAwsServers(s3: S3TestServer): Promise<AwsServers> {
  let made = 0
  const state = { lifeMs: 3_600_000, given: [] as string[], asked: [] as URLSearchParams[], externalIds: new Map<string, string>() }
  const keysFrom = (source: string) => {
    state.given.push(source)
    const keys = { id: `ASIATEST${++made}`, secret: `secret/${made}`, token: `session+token/${made}`, endMs: Date.now() + state.lifeMs }
    s3.sessions.set(keys.id, { secretKey: keys.secret, token: keys.token, endMs: keys.endMs })
    return keys
  }
  const json = (response: ServerResponse, value: unknown): void =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  const metadata = (source: string) => {
    const { id, secret, token, endMs } = keysFrom(source)
    return { Code: 'Success', AccessKeyId: id, SecretAccessKey: secret, Token: token, Expiration: new Date(endMs).toISOString() }
  }
  const sts = (query: URLSearchParams, response: ServerResponse): void => {
    state.asked.push(query)
    const action = query.get('Action') ?? ''
    const wanted = state.externalIds.get(query.get('RoleArn') ?? '')
    if (wanted !== undefined && query.get('ExternalId') !== wanted)
      return void response.writeHead(403).end('<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code></Error></ErrorResponse>')
    const { id, secret, token, endMs } = keysFrom(action === 'AssumeRole' ? 'assume-role' : 'web-identity')
    const keys = `<AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey><SessionToken>${token}</SessionToken><Expiration>${new Date(endMs).toISOString()}</Expiration>`
    response
      .writeHead(200, { 'content-type': 'text/xml' })
      .end(`<${action}Response><${action}Result><Credentials>${keys}</Credentials></${action}Result></${action}Response>`)
  }
  const answer = (request: IncomingMessage, body: string, response: ServerResponse): void => {
    const url = new URL(request.url ?? '/', 'http://aws')
    const refuse = (): void => void response.writeHead(401).end()
    if (request.method === 'PUT' && url.pathname === '/latest/api/token') response.writeHead(200).end(metadataToken)
    else if (url.pathname.startsWith('/latest/meta-data/iam/security-credentials/')) {
      if (request.headers['x-aws-ec2-metadata-token'] !== metadataToken) refuse()
      else if (url.pathname.endsWith('/')) response.end('instance-role')
      else json(response, metadata('instance'))
    } else if (url.pathname === '/container') {
      if (request.headers.authorization === containerToken) json(response, metadata('container'))
      else refuse()
    } else if (url.pathname === '/federation/credentials') {
      if (request.headers['x-amz-sso_bearer_token'] === ssoToken) signedOn(response)
      else refuse()
    } else if (request.method === 'POST') sts(new URLSearchParams(body), response)
    else response.writeHead(404).end()
  }
  const signedOn = (response: ServerResponse): void => {
    const { id, secret, token, endMs } = keysFrom('sso')
    json(response, { roleCredentials: { accessKeyId: id, secretAccessKey: secret, sessionToken: token, expiration: endMs } })
  }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', chunk => {
      body += String(chunk)
    })
    request.on('end', () => answer(request, body, response))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  })
}
