import { OAuth2Server } from 'oauth2-mock-server'

/** Claims of the person who is signed in at the issuer. */
export interface GooglePerson {
  readonly sub: string
  readonly email?: string
  readonly email_verified?: boolean | string | undefined
  readonly name?: string
  readonly picture?: string
}

export interface GoogleServer {
  readonly url: string
  /** The settings that make a gateway use it. */
  readonly env: Readonly<Record<string, string>>
  /** The person who is signed in at the issuer from now on. */
  person: GooglePerson
  /** Changes the claims of id tokens before they are signed. Null means no change. */
  tamper: ((claims: Record<string, unknown>) => void) | null
  /** The answer of the token endpoint. Null means normal answers. */
  refusal: { readonly status: number; readonly body: Record<string, unknown> } | null
  /** The error with which the next sign-ins return. Null means no error. */
  error: string | null
  /** Makes the issuer sign with unpublished keys from now on. */
  forgeSignatures(): Promise<void>
  stop(): Promise<void>
}

/** Starts an OpenID Connect issuer on loopback that takes the place of Google. */
export async function startGoogle(port = 0): Promise<GoogleServer> {
  const server = new OAuth2Server()
  await server.issuer.keys.generate('RS256')
  await server.start(port, '127.0.0.1')
  const url = server.issuer.url ?? ''
  const google: GoogleServer = {
    url,
    env: { GOOGLE_ISSUER: url, GOOGLE_CLIENT_ID: 'google-client', GOOGLE_CLIENT_SECRET: 'google-client-secret' },
    person: { sub: 'g-1', email: 'asha@example.test', email_verified: true, name: 'Asha Rao' },
    tamper: null,
    refusal: null,
    error: null,
    async forgeSignatures() {
      // The issuer publishes the result of `toJSON`, and signs with its own keys.
      const published = server.issuer.keys.toJSON()
      server.issuer.keys.toJSON = () => published
      const { OAuth2Issuer } = await import('oauth2-mock-server')
      const forger = new OAuth2Issuer()
      const key = await forger.keys.generate('RS256', { kid: published[0]?.kid ?? 'x' })
      server.issuer.keys.get = () => key
    },
    stop: () => server.stop(),
  }
  server.service.on('beforeTokenSigning', token => {
    Object.assign(token.payload, google.person)
    google.tamper?.(token.payload)
  })
  server.service.on('beforeUserinfo', response => {
    response.body = { ...google.person }
  })
  server.service.on('beforeResponse', response => {
    if (google.refusal === null) return
    response.statusCode = google.refusal.status
    response.body = google.refusal.body
  })
  server.service.on('beforeAuthorizeRedirect', redirect => {
    if (google.error === null) return
    redirect.url.searchParams.delete('code')
    redirect.url.searchParams.set('error', google.error)
  })
  return google
}
