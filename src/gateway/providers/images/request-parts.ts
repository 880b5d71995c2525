import { fail } from '../../../platform/errors.ts'
import type { Secret } from '../../../platform/secret.ts'
import type { ImageFile, ImageWish } from '../../wire/images.ts'
import type { Target, UpstreamRequest } from '../dialect.ts'
import type { Provider } from '../provider.ts'
import { userAgent } from '../user-agent.ts'

/** Headers of a call to a provider: ours alone, the credential as the provider takes it. */
export function headersFor({ provider, credential }: Pick<Target, 'provider' | 'credential'>, accept = 'application/json'): Record<string, string> {
  return { accept, 'accept-encoding': 'identity', 'user-agent': userAgent, ...credentialHeader(provider, credential) }
}

function credentialHeader({ auth }: Provider, credential: Secret | null): Record<string, string> {
  if (credential === null || auth === 'none') return {}
  return auth === 'bearer' ? { authorization: `Bearer ${credential.reveal()}` } : { [auth]: credential.reveal() }
}

/** A JSON request. `undefined` fields are left out. */
export function jsonRequest(url: string, headers: Record<string, string>, body: Record<string, unknown>, dropped: readonly string[]): UpstreamRequest {
  return { method: 'POST', url, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body), dropped }
}

export interface FilePart extends Pick<ImageFile, 'filename' | 'contentType' | 'bytes'> {
  readonly field: string
}

/** A multipart request; files keep their bytes. */
export function formRequest(
  url: string,
  headers: Record<string, string>,
  { fields, files }: { readonly fields: readonly (readonly [string, string])[]; readonly files: readonly FilePart[] },
  boundary: string,
  dropped: readonly string[],
): UpstreamRequest {
  const parts: Buffer[] = []
  for (const [name, value] of fields)
    parts.push(Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="${quoted(name)}"\r\n\r\n`), Buffer.from(value), newLine)
  for (const { field, filename, contentType, bytes } of files) {
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${quoted(field)}"; filename="${quoted(filename)}"\r\ncontent-type: ${contentType}\r\n\r\n`
    parts.push(Buffer.from(head), bytes, newLine)
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`))
  return { method: 'POST', url, headers: { ...headers, 'content-type': `multipart/form-data; boundary=${boundary}` }, body: Buffer.concat(parts), dropped }
}

const newLine = Buffer.from('\r\n')

/** As browsers write names into a form. */
const quoted = (name: string): string => name.replace(/["\r\n]/g, found => (found === '"' ? '%22' : found === '\r' ? '%0D' : '%0A'))

/** Text of a field of a form. */
export const fieldText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** The fields of `others` that the provider knows, and the names of the rest. */
export function splitOthers({ others }: ImageWish, taken: readonly string[]): { readonly kept: Record<string, unknown>; readonly left: string[] } {
  const entries = Object.entries(others)
  return {
    kept: Object.fromEntries(entries.filter(([name]) => taken.includes(name))),
    left: entries.map(([name]) => name).filter(name => !taken.includes(name)),
  }
}

/** Names of what the caller asked for among quality, user, size and response_format, and does not get. */
export function lostOf(
  wish: ImageWish,
  kept: { readonly quality?: boolean; readonly user?: boolean; readonly size: boolean; readonly format: boolean },
): string[] {
  return [
    ...(wish.quality !== null && kept.quality !== true ? ['quality'] : []),
    ...(wish.user !== null && kept.user !== true ? ['user'] : []),
    ...(wish.asked.size && !kept.size ? ['size'] : []),
    ...(wish.asked.format && !kept.format ? ['response_format'] : []),
  ]
}

/** Throws `unsupported_operation` when the wish is an edit. */
export function refuseEdits(wish: ImageWish, { provider }: Target): void {
  if (wish.edit !== null) throw fail('unsupported_operation', { message: `Images are not edited at ${provider.id} from here.` })
}
