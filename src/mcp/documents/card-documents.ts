import { PublicDocument } from '../../gateway/http/documents/public-document.ts'
import { aiCatalog, serverCard } from './server-card.ts'

/** The documents that say where the MCP server is. */
export interface CardDocuments {
  readonly card: PublicDocument
  readonly catalog: PublicDocument
}

/** Returns the documents for a server with this name (setting SERVICE_ID) and version. */
export function cardDocuments(serviceId: string, version: string): CardDocuments {
  const text = (value: unknown): string => JSON.stringify(value, null, 2)
  return {
    card: new PublicDocument(baseUrl => text(serverCard(baseUrl, serviceId, version))),
    catalog: new PublicDocument(baseUrl => text(aiCatalog(baseUrl, serverCard(baseUrl, serviceId, version)))),
  }
}
