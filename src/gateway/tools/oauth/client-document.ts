import { callbackPath } from './connections/callback-path.ts'

/** The path of the document that says to issuers what this gateway is. */
const clientDocumentPath = '/oauth/tool-client'

/** What a client-id metadata document of this gateway contains. Its address is the client id, so no issuer has to know the gateway before. */
export interface ClientDocument {
  readonly client_id: string
  readonly client_name: string
  readonly client_uri: string
  readonly redirect_uris: readonly string[]
  readonly grant_types: readonly string[]
  readonly response_types: readonly string[]
  readonly token_endpoint_auth_method: string
}

/** Returns the address of the document. Null: the gateway has no public https address, so no issuer can read it. */
export const clientDocumentUrl = (baseUrl: string): string | null => (baseUrl.startsWith('https:') ? `${baseUrl}${clientDocumentPath}` : null)

/** Returns the document of a gateway. Decision 0833 says why. */
export const clientDocument = (baseUrl: string): ClientDocument => ({
  client_id: `${baseUrl}${clientDocumentPath}`,
  client_name: 'Brigade',
  client_uri: baseUrl,
  redirect_uris: [`${baseUrl}${callbackPath}`],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
})
