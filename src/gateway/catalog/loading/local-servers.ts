import type { Config } from '../../../platform/config.ts'
import { isObject } from '../../../platform/values/json.ts'
import type { Provider } from '../../providers/provider.ts'
import type { CatalogPart } from './build-snapshot.ts'
import type { ModelEntry } from './file-schema.ts'

interface KnownServer {
  readonly id: string
  readonly name: string
  readonly port: number
}

/** Servers with an OpenAI-compatible API and their default ports. */
const knownServers: readonly KnownServer[] = [
  { id: 'local-ollama', name: 'Ollama on this machine', port: 11434 },
  { id: 'local-llamacpp', name: 'llama.cpp on this machine', port: 8080 },
  { id: 'local-lmstudio', name: 'LM Studio on this machine', port: 1234 },
  { id: 'local-vllm', name: 'vLLM on this machine', port: 8000 },
]

/** Provider ids of local servers. */
export const localServerIds: readonly string[] = knownServers.map(server => server.id)

/** Timeout of a request to a local server. A server on loopback either replies immediately or does not exist. */
const answerTimeoutMs = 300
/** Maximum number of models of one server. The project chose it. */
const modelsMax = 200
const idMaxChars = 256

export interface LocalSearch {
  readonly config: Config
  /** Returns the JSON body of a 2xx reply. Rejects for every other reply and after the timeout. */
  getJson(url: string, timeoutMs: number): Promise<unknown>
  /** Ports of this process (gateway and sandbox). A server on one of them is never treated as a local server. */
  readonly ownPorts: readonly number[]
  /** Other ports for the known servers, by provider id. */
  readonly ports?: Readonly<Record<string, number>>
}

/**
 * Finds OpenAI-compatible servers on their usual loopback ports, with concurrent requests. Returns the servers that list models, with those models.
 * They cost nothing and need no key. They count as outside India until the operator's file states their residency. Never throws.
 */
export async function findLocalServers(search: LocalSearch): Promise<readonly CatalogPart[]> {
  if (!search.config.LOCAL_SERVERS) return []
  const servers = knownServers
    .map(server => ({ ...server, port: search.ports?.[server.id] ?? server.port }))
    .filter(server => !search.ownPorts.includes(server.port))
  const found = await Promise.all(servers.map(server => askServer(server, search)))
  return found.filter(part => part !== null)
}

async function askServer(server: KnownServer, search: LocalSearch): Promise<CatalogPart | null> {
  const baseUrl = `http://127.0.0.1:${server.port}/v1`
  let listing: unknown
  try {
    listing = await search.getJson(`${baseUrl}/models`, answerTimeoutMs)
  } catch {
    // In most cases nothing listens there, or something other than a model server.
    return null
  }
  const models = modelsOf(listing, server.id)
  return models.length === 0 ? null : { provider: toProvider(server, baseUrl), models }
}

function toProvider(server: KnownServer, baseUrl: string): Provider {
  return {
    id: server.id,
    name: server.name,
    dialect: 'openai',
    baseUrl,
    auth: 'none',
    residency: 'global',
    byok: false,
    keyShape: null,
    quirks: [],
    forwards: 'all',
    platformKey: null,
    configured: true,
  }
}

/** Returns the entries of an OpenAI model list. If the entries have routes, the list comes from a gateway such as this one and counts as empty. */
function modelsOf(listing: unknown, providerId: string): readonly ModelEntry[] {
  if (!isObject(listing) || !Array.isArray(listing['data'])) return []
  const items = listing['data'].filter(isObject)
  if (items.some(item => Array.isArray(item['routes']))) return []
  return items.slice(0, modelsMax).flatMap(item => {
    const id = item['id']
    return typeof id === 'string' && /^[\x21-\x7e]+$/.test(id) && id.length <= idMaxChars ? [toEntry(id, item, providerId)] : []
  })
}

function toEntry(id: string, item: Record<string, unknown>, providerId: string): ModelEntry {
  const window = item['max_model_len']
  const embeds = /embed|minilm|(^|[/-])(bge|e5|gte)-/i.test(id)
  return {
    id,
    kind: embeds ? 'embedding' : 'chat',
    owned_by: providerId,
    ...(typeof window === 'number' && Number.isSafeInteger(window) && window > 0 ? { context_length: window } : {}),
    // These servers accept function definitions. Nothing says whether a model uses them well.
    tools: !embeds,
    routes: [{ provider: providerId, input_inr_per_mtok: 0, output_inr_per_mtok: 0, source: 'runs on this machine' }],
  }
}
