/** Writes requests for Claude models as Bedrock and Vertex take them: the body of the messages format at another address, with another version. */
import type { JsonObject } from '../../../../platform/values/json.ts'
import { hasDoubles } from '../../../wire/json/json-doubles.ts'
import { editMembers } from '../../../wire/json/json-members.ts'
import { bedrockUrl, vertexClaudeCountUrl, vertexClaudeUrl } from '../../clouds/cloud-addresses.ts'
import { narrowedFor, takesField } from '../../clouds/cloud-fields.ts'
import type { HubRequest, NativeRequest, Target, UpstreamRequest } from '../../dialect.ts'
import type { CloudId } from '../../provider.ts'
import { jsonBody, mendedBody } from '../json-values.ts'
import { anthropicHeaders } from './anthropic-relay.ts'
import { messagesBody } from './anthropic-request.ts'
import { abilitiesOf } from './claude-version.ts'

/** The version that each cloud requires in the body. */
const versions: Readonly<Record<CloudId, string>> = { 'bedrock-invoke': 'bedrock-2023-05-31', vertex: 'vertex-2023-10-16' }

/** Returns a request of the hub format for a Claude model in a cloud. */
export function cloudRequest(cloud: CloudId, request: HubRequest, target: Target): UpstreamRequest {
  const { body, dropped } = messagesBody(request, target, takesField('output_config', target.provider))
  const call: CloudCall = { body, bytes: null, stream: request.stream, betas: [], write: mendedBody }
  const made = written(cloud, call, target)
  return { ...made, dropped: [...dropped, ...made.dropped] }
}

/** Returns a request of the messages format for a Claude model in a cloud, with as few changes as the cloud allows. */
export function cloudRelay(cloud: CloudId, { body, bytes, stream, headers }: NativeRequest, target: Target): UpstreamRequest {
  return written(cloud, { body, bytes, stream, betas: betasOf(body, headers['anthropic-beta']), write: jsonBody }, target)
}

/** Returns the request that counts the tokens of a prompt on Vertex. */
export function cloudCountRelay(cloud: CloudId, { body, bytes, headers }: NativeRequest, target: Target): UpstreamRequest {
  const call: CloudCall = { body, bytes, stream: false, betas: betasOf(body, headers['anthropic-beta']), write: jsonBody, counts: true }
  return written(cloud, call, target)
}

interface CloudCall {
  readonly body: JsonObject
  /** The body as the client wrote it. Null when it was made here. */
  readonly bytes: Buffer | null
  readonly stream: boolean
  readonly betas: readonly string[]
  readonly write: (value: unknown, target: Target) => Pick<UpstreamRequest, 'body' | 'unwritten'>
  /** True for a count of tokens, whose body names the model. */
  readonly counts?: true
}

function written(cloud: CloudId, call: CloudCall, target: Target): UpstreamRequest {
  const { provider, upstreamModel, traits } = target
  const narrowed = narrowedFor(cloud, call.body, call.betas, provider, abilitiesOf(upstreamModel, traits).adaptive)
  return {
    method: 'POST',
    url: urlOf(cloud, call, target),
    headers: headersOf(cloud, narrowed.betas, target),
    ...bodyOf(call, narrowed.body, editsOf(cloud, call, narrowed, target), target),
    dropped: narrowed.dropped,
  }
}

function urlOf(cloud: CloudId, { stream, counts }: CloudCall, { provider: { baseUrl }, upstreamModel }: Target): string {
  if (cloud === 'bedrock-invoke') return bedrockUrl(baseUrl, upstreamModel, stream)
  return counts === true ? vertexClaudeCountUrl(baseUrl) : vertexClaudeUrl(baseUrl, upstreamModel, stream)
}

/** Returns the headers. The version is in the body. Vertex takes betas in their header, and Bedrock in the body. */
function headersOf(cloud: CloudId, betas: readonly string[], target: Target): Record<string, string> {
  const { 'anthropic-version': _version, ...headers } = anthropicHeaders(target, false)
  return cloud === 'vertex' && betas.length > 0 ? { ...headers, 'anthropic-beta': betas.join(',') } : headers
}

/** Returns the new values of fields. Undefined removes a field. */
function editsOf(cloud: CloudId, call: CloudCall, narrowed: ReturnType<typeof narrowedFor>, { upstreamModel }: Target): ReadonlyMap<string, unknown> {
  const edits = new Map<string, unknown>(narrowed.withheld.map(name => [name, undefined]))
  edits.set('model', call.counts === true ? upstreamModel : undefined)
  if (cloud === 'bedrock-invoke') edits.set('stream', undefined)
  edits.set('anthropic_version', typeof call.body['anthropic_version'] === 'string' ? call.body['anthropic_version'] : versions[cloud])
  edits.set('anthropic_beta', cloud === 'bedrock-invoke' && narrowed.betas.length > 0 ? narrowed.betas : undefined)
  return edits
}

/** Returns the body with the edits. Bytes of the client stay as they are, except for edited fields. */
function bodyOf(
  { body: given, bytes, write }: CloudCall,
  body: JsonObject,
  edits: ReadonlyMap<string, unknown>,
  target: Target,
): Pick<UpstreamRequest, 'body' | 'unwritten'> {
  if (bytes !== null && body === given && !hasDoubles(bytes, body))
    return { body: editMembers(bytes, new Map([...edits].map(([name, value]) => [name, value === undefined ? undefined : JSON.stringify(value)]))) }
  const left = Object.entries(body).filter(([name]) => !edits.has(name))
  return write(Object.fromEntries([...left, ...[...edits].filter(([, value]) => value !== undefined)]), target)
}

/** Returns the betas of a request: those of the body, or else those of the header. */
function betasOf({ anthropic_beta: own }: JsonObject, header: string | undefined): readonly string[] {
  const given = Array.isArray(own) ? own.filter(beta => typeof beta === 'string') : (header ?? '').split(',')
  return [...new Set(given.map(beta => beta.trim()).filter(beta => beta !== ''))]
}
