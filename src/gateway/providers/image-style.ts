/** How providers of images are spoken to: one style a way of asking and answering. Pure: no clock, no network. */
import type { ImageParams } from '../wire/images.ts'
import { objectOfBytes } from '../wire/json/json-bounds.ts'
import type { Failure, Target, UpstreamRequest } from './dialect.ts'

/** One picture of a reply: `url` or `b64_json` is there, other fields (revised_prompt, seed) are the provider's. */
export type MadeImage = Readonly<Record<string, unknown>> & ({ readonly url: string } | { readonly b64_json: string })

/** A look at a job that runs at the provider, and its end where the provider offers one. */
export interface Job {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly cancelUrl: string | null
}

/** What a 2xx reply comes to. */
export type ImageOutcome =
  /** `whole`: the reply as it came, when it is already what the caller gets. */
  | { readonly kind: 'images'; readonly images: readonly MadeImage[]; readonly whole: Readonly<Record<string, unknown>> | null }
  | { readonly kind: 'job'; readonly job: Job }
  | { readonly kind: 'pending' }
  /** A 2xx that is a failure in the provider's own words. `client`: the request itself is at fault. */
  | { readonly kind: 'failed'; readonly failure: Failure; readonly message: string }

export interface ImageReply {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
}

export interface ImageStyle {
  /** Most pictures that one request makes; more are asked for side by side. */
  imagesPerRequest(target: Target): number
  /** `boundary` separates the pieces of a form and occurs in none of them. Throws `unsupported_operation` for edits that the style cannot express. */
  request(params: ImageParams, target: Target, boundary: string): UpstreamRequest
  /** Reads a 2xx reply to `request`. */
  reply(reply: ImageReply, target: Target): ImageOutcome
  /** Reads a 2xx reply to a look at a job. */
  poll?(reply: ImageReply): ImageOutcome
}

export const failedWith = (failure: Failure, message: string): ImageOutcome => ({ kind: 'failed', failure, message })
/** The provider answered, and not with what it should. */
export const unusable = (message: string): ImageOutcome => failedWith({ kind: 'transient', status: null }, message)
/** The provider does not make this picture: its rules, not the route, so no other route is tried. */
export const refused = (message: string): ImageOutcome => failedWith({ kind: 'client', status: 400 }, message)

export const noImage = 'it answered without an image'

/** Returns the pictures, or that there is none. */
export function madeOf(images: readonly MadeImage[]): ImageOutcome {
  return images.length === 0 ? unusable(noImage) : { kind: 'images', images, whole: null }
}

/** The reply as a JSON object within bounds, or null. */
export function objectOf({ bytes }: ImageReply): Readonly<Record<string, unknown>> | null {
  return objectOfBytes(bytes)
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null
}

export const textOr = (value: unknown, other: string): string => (typeof value === 'string' && value !== '' ? value : other)
/** Non-empty strings of a list. */
export const texts = (value: unknown): string[] => (Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string' && item !== '') : [])
/** Base64 without the head of a data URL. */
export const bareBase64 = (text: string): string => text.replace(/^data:[^,]{0,100},/, '')
