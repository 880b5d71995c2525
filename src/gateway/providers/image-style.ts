/**
 * Image styles. A style is one way to request images from providers and to read their replies. The functions are pure: they use no clock and no
 * network.
 */
import type { ImageParams } from '../wire/images.ts'
import { objectOfBytes } from '../wire/json/json-bounds.ts'
import type { Failure, Target, UpstreamRequest } from './dialect.ts'

/** One picture of a reply. It has `url` or `b64_json`. Other fields, such as revised_prompt and seed, come from the provider. */
export type MadeImage = Readonly<Record<string, unknown>> & ({ readonly url: string } | { readonly b64_json: string })

/** A job that runs at the provider: the URL of its state, and the URL that cancels it if the provider has one. */
export interface Job {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly cancelUrl: string | null
}

/** The result of a 2xx reply. */
export type ImageOutcome =
  /** The pictures. `whole` is the unchanged reply, if it already has the caller's format. */
  | { readonly kind: 'images'; readonly images: readonly MadeImage[]; readonly whole: Readonly<Record<string, unknown>> | null }
  | { readonly kind: 'job'; readonly job: Job }
  | { readonly kind: 'pending' }
  /** A 2xx reply in which the provider reports a failure. The kind `client` means that the request itself is wrong. */
  | { readonly kind: 'failed'; readonly failure: Failure; readonly message: string }

export interface ImageReply {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
  /** The JSON object in the bytes, when the caller has parsed it: null without one within the bounds. Absent when nobody has parsed the bytes. */
  readonly object?: Readonly<Record<string, unknown>> | null
}

export interface ImageStyle {
  /** Returns the maximum number of pictures of one request. For more pictures, several requests run concurrently. */
  imagesPerRequest(target: Target): number
  /**
   * Returns the request. `boundary` separates the parts of a form and occurs in none of them. Throws `unsupported_operation` for edits that the style
   * cannot express.
   */
  request(params: ImageParams, target: Target, boundary: string): UpstreamRequest
  /** Reads a 2xx reply to `request`. */
  reply(reply: ImageReply, target: Target): ImageOutcome
  /** Reads a 2xx reply about the state of a job. */
  poll?(reply: ImageReply): ImageOutcome
}

export const failedWith = (failure: Failure, message: string): ImageOutcome => ({ kind: 'failed', failure, message })
/** Returns a failure of the route: the provider's answer contains neither an image nor a job. */
export const unusable = (message: string): ImageOutcome => failedWith({ kind: 'transient', status: null }, message)
/** Returns a refusal: the provider's rules forbid this picture. No other route is tried. */
export const refused = (message: string): ImageOutcome => failedWith({ kind: 'client', status: 400 }, message)

export const noImage = 'it answered without an image'

/** Returns the pictures, or a failure if there is none. */
export function madeOf(images: readonly MadeImage[]): ImageOutcome {
  return images.length === 0 ? unusable(noImage) : { kind: 'images', images, whole: null }
}

/** Returns the reply as a JSON object. Returns null if it is not one, or exceeds the bounds. */
export function objectOf({ bytes, object }: ImageReply): Readonly<Record<string, unknown>> | null {
  return object === undefined ? objectOfBytes(bytes) : object
}

/** Returns the value if it is a JSON object, else null. */
export function asObject(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null
}

/** Returns the value if it is a non-empty string, else `other`. */
export const textOr = (value: unknown, other: string): string => (typeof value === 'string' && value !== '' ? value : other)
/** Returns the non-empty strings of a list. */
export const texts = (value: unknown): string[] => (Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string' && item !== '') : [])
/** Returns base64 without the head of a data URL. */
export const bareBase64 = (text: string): string => text.replace(/^data:[^,]{0,100},/, '')
