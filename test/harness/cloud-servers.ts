/** The servers around a cloud: sources of AWS keys, token endpoints of Google and Entra, and an oracle for signatures that signs again with the SDK. */
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignatureV4 } from '@smithy/signature-v4'
import { type AwsServers, startAwsServers } from './aws-servers.ts'
import type { S3TestServer } from './s3-server.ts'
import type { RecordedRequest, UpstreamScript } from './upstream-server.ts'

/** The keys that the sources of AWS identities have issued, by access key id. */
export type IssuedKeys = Map<string, { readonly secretKey: string; readonly token: string; readonly endMs: number }>

export interface AwsKeysServer extends AwsServers {
  readonly issued: IssuedKeys
}

export async function startAwsKeys(): Promise<AwsKeysServer> {
  const issued: IssuedKeys = new Map()
  return Object.assign(await startAwsServers({ sessions: issued } as unknown as S3TestServer), { issued })
}

/** Returns the access key id, the scope and the signed headers of a request. Null when it has no signature. */
export function signatureIn({ headers }: Pick<RecordedRequest, 'headers'>) {
  const found = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
    String(headers.authorization ?? ''),
  )
  if (found === null) return null
  const [, keyId = '', , region = '', service = '', signed = '', signature = ''] = found
  return { keyId, region, service, signed: signed.split(';'), signature }
}

/** Signs a received request again with the SDK. Returns true when the result is the same. */
export async function isSignedWith(request: RecordedRequest, { secretKey, token }: { readonly secretKey: string; readonly token?: string }): Promise<boolean> {
  const claimed = signatureIn(request)
  if (claimed === null) return false
  const { keyId: accessKeyId, region, service, signed, signature } = claimed
  const url = new URL(request.path, `http://${request.headers.host}`)
  const credentials = { accessKeyId, secretAccessKey: secretKey, ...(token === undefined ? {} : { sessionToken: token }) }
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 })
  const headers = Object.fromEntries(signed.map(name => [name, String(request.headers[name])]))
  delete headers['x-amz-security-token']
  const stamp = String(request.headers['x-amz-date'])
  const signingDate = new Date(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  const query = Object.fromEntries(url.searchParams)
  const again = await signer.sign(
    { method: request.method, protocol: 'http:', hostname: url.hostname, path: url.pathname, query, headers, body: request.raw },
    { signingDate },
  )
  return again.headers['authorization']?.endsWith(`Signature=${signature}`) === true
}

class Sha256 {
  readonly #hash: ReturnType<typeof createHash> | ReturnType<typeof createHmac>
  constructor(key?: unknown) {
    this.#hash = key === undefined ? createHash('sha256') : createHmac('sha256', key as Buffer)
  }
  update(data: Uint8Array): void {
    this.#hash.update(data)
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest())
  }
  reset(): void {}
}

/** Answers as Bedrock does to keys that have ended or were never issued. */
export function refusalByAws(request: RecordedRequest, issued: IssuedKeys): UpstreamScript | null {
  const keys = issued.get(signatureIn(request)?.keyId ?? '')
  if (keys !== undefined && keys.endMs > Date.now() && request.headers['x-amz-security-token'] === keys.token) return null
  return {
    status: 403,
    headers: { 'x-amzn-errortype': 'ExpiredTokenException:http://internal.amazon.com/coral/com.amazon.coral.service/' },
    body: { message: `The security token included in the request is expired ${String(request.headers['x-amz-security-token'])}` },
  }
}

export interface TokenServer {
  readonly url: string
  /** The forms or queries of all requests, oldest first. */
  readonly asked: { readonly path: string; readonly fields: URLSearchParams; readonly headers: IncomingMessage['headers'] }[]
  /** The tokens that are valid now. */
  readonly valid: Set<string>
  /** How long new tokens live, in seconds. */
  lifeSeconds: number
  /** True: requests are never answered. */
  hangs: boolean
  /** Answers with this status in place of a token. Null: with a token. */
  refusesWith: number | null
  close(): Promise<void>
}

/** Starts a server for the token endpoints of Google and Entra and for the metadata services of both. Every token is different. */
export async function startTokenServer(): Promise<TokenServer> {
  let made = 0
  const state = { asked: [] as TokenServer['asked'], valid: new Set<string>(), lifeSeconds: 3600, hangs: false, refusesWith: null as number | null }
  const reply = (response: ServerResponse): void => {
    if (state.hangs) return
    response.setHeader('content-type', 'application/json').setHeader('metadata-flavor', 'Google')
    if (state.refusesWith !== null) return void response.writeHead(state.refusesWith).end(JSON.stringify({ error: 'invalid_client', error_description: 'x' }))
    const token = `token-${++made}-of-the-cloud`
    state.valid.add(token)
    response.end(
      JSON.stringify({
        access_token: token,
        token_type: 'Bearer',
        expires_in: state.lifeSeconds,
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      }),
    )
  }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', chunk => {
      body += String(chunk)
    })
    request.on('end', () => {
      const url = new URL(request.url ?? '/', 'http://tokens')
      state.asked.push({ path: url.pathname, fields: request.method === 'GET' ? url.searchParams : new URLSearchParams(body), headers: request.headers })
      reply(response)
    })
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
