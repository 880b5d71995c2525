import { OAuth2Server } from 'oauth2-mock-server'

/** Claims of the person who is signed in at the issuer. */
export interface GooglePerson {
  readonly sub: string
  readonly email?: string
  readonly email_verified?: boolean | string
  readonly name?: string
  readonly picture?: string
}

export interface GoogleServer {
  readonly url: string
  /** The settings that make a gateway use it. */
  readonly env: Readonly<Record<string, string>>
  /** Who is signed in there from now on. */
  person: GooglePerson
  /** Changes the claims of id tokens just before they are signed; null leaves them alone. */
  tamper: ((claims: Record<string, unknown>) => void) | null
  /** What the token endpoint answers instead; null: what it should. */
  refusal: { readonly status: number; readonly body: Record<string, unknown> } | null
  /** Error with which the next sign-ins come back; null: none. */
  error: string | null
  /** Signs with keys that were never published, from now on. */
  forgeSignatures(): Promise<void>
  stop(): Promise<void>
}

/** An OpenID Connect issuer on loopback, in the place of Google. */
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
      // The issuer publishes what `toJSON` says, and signs with what it holds.
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
