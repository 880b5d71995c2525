import { fail } from '../../../platform/errors.ts'
import type { ImageParams } from '../../wire/images.ts'
import { type FormPart, multipartBody } from '../../wire/multipart-body.ts'
import { callHeaders } from '../call-headers.ts'
import type { Target, UpstreamRequest } from '../dialect.ts'
import { jsonBody } from '../dialects/json-values.ts'

/** Returns the headers of a call to a provider. They are the gateway's own headers, with the credential in the form that the provider accepts. */
export function headersFor({ provider, credential }: Pick<Target, 'provider' | 'credential'>, accept = 'application/json'): Record<string, string> {
  return { accept, ...callHeaders(provider, credential) }
}

/** Returns a JSON request. `undefined` fields are left out. A target that writes later gets the body as a value. */
export function jsonRequest(
  url: string,
  headers: Record<string, string>,
  body: Record<string, unknown>,
  dropped: readonly string[],
  target: Pick<Target, 'writesLater'>,
): UpstreamRequest {
  return { method: 'POST', url, headers: { ...headers, 'content-type': 'application/json' }, ...jsonBody(body, target), dropped }
}

/** Returns a multipart request. Files keep their bytes. */
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

/** Returns the text of a form field. */
export const fieldText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** Returns the fields of `others` that the provider knows, and the names of the rest. */
export function splitOthers({ others }: ImageParams, taken: readonly string[]): { readonly kept: Record<string, unknown>; readonly left: string[] } {
  const entries = Object.entries(others)
  return {
    kept: Object.fromEntries(entries.filter(([name]) => taken.includes(name))),
    left: entries.map(([name]) => name).filter(name => !taken.includes(name)),
  }
}

/** Returns the names of requested fields that the provider cannot honour, out of quality, user, size, response_format and partial_images. */
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

/** Throws `unsupported_operation` if the request is an edit. */
export function refuseEdits(params: ImageParams, { provider }: Target): void {
  if (params.edit !== null) throw fail('unsupported_operation', { message: `Images are not edited at ${provider.id} from here.` })
}
