import { fail } from '../../../platform/errors.ts'
import type { ImageParams } from '../../wire/images.ts'
import { type FormPart, multipartBody } from '../../wire/multipart-body.ts'
import { callHeaders } from '../call-headers.ts'
import type { Target, UpstreamRequest } from '../dialect.ts'

/** Headers of a call to a provider: ours alone, the credential as the provider takes it. */
export function headersFor({ provider, credential }: Pick<Target, 'provider' | 'credential'>, accept = 'application/json'): Record<string, string> {
  return { accept, ...callHeaders(provider, credential) }
}

/** A JSON request. `undefined` fields are left out. */
export function jsonRequest(url: string, headers: Record<string, string>, body: Record<string, unknown>, dropped: readonly string[]): UpstreamRequest {
  return { method: 'POST', url, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body), dropped }
}

/** A multipart request; files keep their bytes. */
export function formRequest(
  url: string,
  headers: Record<string, string>,
  parts: readonly FormPart[],
  boundary: string,
  dropped: readonly string[],
): UpstreamRequest {
  const { contentType, body } = multipartBody(parts, boundary)
  return { method: 'POST', url, headers: { ...headers, 'content-type': contentType }, body, dropped }
}

/** Text of a field of a form. */
export const fieldText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** The fields of `others` that the provider knows, and the names of the rest. */
export function splitOthers({ others }: ImageParams, taken: readonly string[]): { readonly kept: Record<string, unknown>; readonly left: string[] } {
  const entries = Object.entries(others)
  return {
    kept: Object.fromEntries(entries.filter(([name]) => taken.includes(name))),
    left: entries.map(([name]) => name).filter(name => !taken.includes(name)),
  }
}

/** Names of what the caller asked for among quality, user, size, response_format and partial_images, and does not get. */
export function lostOf(
  params: ImageParams,
  kept: { readonly quality?: boolean; readonly user?: boolean; readonly size: boolean; readonly format: boolean },
): string[] {
  return [
    ...(params.quality !== null && kept.quality !== true ? ['quality'] : []),
    ...(params.user !== null && kept.user !== true ? ['user'] : []),
    ...(params.asked.size && !kept.size ? ['size'] : []),
    ...(params.asked.format && !kept.format ? ['response_format'] : []),
    ...(params.asked.partialImages ? ['partial_images'] : []),
  ]
}

/** Throws `unsupported_operation` when the request is an edit. */
export function refuseEdits(params: ImageParams, { provider }: Target): void {
  if (params.edit !== null) throw fail('unsupported_operation', { message: `Images are not edited at ${provider.id} from here.` })
}
