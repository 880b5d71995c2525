/**
 * The resources that all callers of one process share, with their bounds: memory for request bodies and unread replies, connections, streams, and
 * polls of account resources.
 */
import { getHeapStatistics } from 'node:v8'
import { BodyRoom } from '../gateway/http/bodies/body-room.ts'
import { Connections } from '../gateway/http/connections.ts'
import { StreamPlaces } from '../gateway/http/places.ts'
import { UnreadReplies } from '../gateway/http/unread-replies.ts'
import type { FounderOf } from '../gateway/orgs/founders.ts'
import { addressRangesOf } from '../platform/outbound/address-ranges.ts'
import { HeldReplies } from '../platform/outbound/held-replies.ts'
import { Shares } from '../platform/shares.ts'
import type { AppDeps } from './deps.ts'

const mib = 1024 * 1024
/**
 * The part of the heap for request bodies. A body exists as bytes and as parsed values, and is written a second time for a provider. A sixth of the
 * heap leaves room for all three.
 */
const heapPartOfBodies = 6
const bodiesLeastBytes = 128 * mib
/** The part of the heap for replies that the gateway is reading. Such a reply is kept as bytes, and as values while it is parsed. */
const heapPartOfHeld = 6
/** The smallest room for such replies. With a share of one half, a single founder can still hold the longest whole reply (64 MiB). */
const heldLeastBytes = 128 * mib
/** The part of the heap for replies that clients have not read yet. These replies exist only as bytes. */
const heapPartOfUnread = 8
const unreadLeastBytes = 64 * mib

export interface ProcessBounds {
  readonly bodies: BodyRoom
  readonly unread: UnreadReplies
  readonly connections: Connections
  readonly streamPlaces: StreamPlaces
  /** Bounds the number of polls of account resources. */
  readonly polls: Shares<string>
}

/** Returns the bounds from the configuration. Each founder (person who created organisations) has a limited share of each resource. */
export function processBounds({ config, clock }: AppDeps, founderOf: FounderOf): ProcessBounds {
  const { CONNECTIONS_MAX, STREAMS_MAX, POLLS_MAX, ORG_SHARE_PERCENT: percent, TRUSTED_PROXIES } = config
  const { UNREAD_MAX_BYTES, READ_LEAST_BYTES_PER_S: leastBytesPerSecond } = config
  const totalBytes = UNREAD_MAX_BYTES === 0 ? Math.max(unreadLeastBytes, partOfHeap(heapPartOfUnread)) : UNREAD_MAX_BYTES
  return {
    bodies: bodyRoom(config, clock, founderOf),
    unread: new UnreadReplies({ totalBytes, orgPercent: Math.min(percent, 100), leastBytesPerSecond }, clock, founderOf),
    connections: new Connections({ clock, trusted: addressRangesOf(TRUSTED_PROXIES).ranges, total: CONNECTIONS_MAX, percent, founderOf }),
    streamPlaces: new StreamPlaces(STREAMS_MAX, percent, founderOf),
    polls: new Shares(POLLS_MAX, percent),
  }
}

/**
 * Returns the room for replies of providers, servers of organisations and memory stores. It is a separate function because the domains need it before
 * the other bounds exist.
 */
export function heldReplies({ REPLIES_MAX_BYTES: bytes, ORG_SHARE_PERCENT }: AppDeps['config'], founderOf: FounderOf): HeldReplies {
  const totalBytes = bytes === 0 ? Math.max(heldLeastBytes, partOfHeap(heapPartOfHeld)) : bytes
  return new HeldReplies({ totalBytes, founderPercent: Math.min(ORG_SHARE_PERCENT, 100) }, founderOf)
}

const partOfHeap = (part: number): number => Math.floor(getHeapStatistics().heap_size_limit / part)

function bodyRoom(config: AppDeps['config'], clock: AppDeps['clock'], founderOf: FounderOf): BodyRoom {
  const { BODIES_MAX_BYTES, BODIES_ORG_PERCENT, UPLOAD_LEAST_BYTES_PER_S, FORM_LIMIT_BYTES, INFERENCE_BODY_LIMIT_BYTES } = config
  const byHeap = Math.max(bodiesLeastBytes, partOfHeap(heapPartOfBodies))
  // The largest body of one call always fits, even when the configuration sets less room.
  const largestBytes = Math.max(FORM_LIMIT_BYTES, INFERENCE_BODY_LIMIT_BYTES)
  const totalBytes = Math.max(BODIES_MAX_BYTES === 0 ? byHeap : BODIES_MAX_BYTES, largestBytes)
  const orgBytes = Math.max(Math.floor((totalBytes * BODIES_ORG_PERCENT) / 100), largestBytes)
  return new BodyRoom({ totalBytes, orgBytes, leastBytesPerSecond: UPLOAD_LEAST_BYTES_PER_S }, clock, founderOf)
}
