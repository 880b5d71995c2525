import { BodyRoom } from '../../src/gateway/http/bodies/body-room.ts'
import { Connections } from '../../src/gateway/http/connections.ts'
import { StreamPlaces } from '../../src/gateway/http/places.ts'
import { UnreadReplies } from '../../src/gateway/http/unread-replies.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { addressRangesOf } from '../../src/platform/outbound/address-ranges.ts'

/** Returns the shared bounds of an edge, with more room than a test needs. */
export function roomyBounds(bodyBytes = 1_000_000) {
  return {
    bodies: new BodyRoom({ totalBytes: bodyBytes, orgBytes: bodyBytes, leastBytesPerSecond: 0 }, systemClock),
    unread: new UnreadReplies({ totalBytes: 100_000_000, orgPercent: 100, leastBytesPerSecond: 0 }, systemClock),
    connections: new Connections({ clock: systemClock, trusted: addressRangesOf([]).ranges, total: 1000, percent: 100 }),
    streamPlaces: new StreamPlaces(1000, 100),
  }
}
