/** How long a WebM or Matroska file lasts by the times of its blocks: what a browser has recorded says it nowhere else. */

const ids = {
  segment: 0x18538067,
  info: 0x1549a966,
  timestampScale: 0x2ad7b1,
  cluster: 0x1f43b675,
  timestamp: 0xe7,
  group: 0xa0,
  block: 0xa1,
  simpleBlock: 0xa3,
}
/** What is gone into. The others are passed over. */
const containers: readonly number[] = [ids.segment, ids.info, ids.cluster, ids.group]
const magic = 0x1a45dfa3
const defaultScaleNs = 1_000_000

/** Seconds until the last block begins, or null: no such file, or none with a block. Reads each byte at most once and throws nothing. */
export function webmSeconds(file: Uint8Array): number | null {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength)
  if (bytes.length < 4 || bytes.readUInt32BE(0) !== magic) return null
  let scaleNs = defaultScaleNs
  let clusterAt = 0
  let last: number | null = null
  for (let at = 0; ; ) {
    const id = numberAt(bytes, at, false)
    const length = id === null ? null : numberAt(bytes, at + id.width, true)
    if (id === null || length === null) break
    const start = at + id.width + length.width
    const isContainer = containers.includes(id.value)
    // A recorder does not know how long segment and clusters will be; anything else must say it.
    if (length.isOpen && !isContainer) break
    const content = bytes.subarray(start, start + length.value)
    if (id.value === ids.timestampScale) scaleNs = wholeOf(content) || defaultScaleNs
    if (id.value === ids.timestamp) clusterAt = wholeOf(content)
    if (id.value === ids.block || id.value === ids.simpleBlock) last = Math.max(last ?? 0, clusterAt + offsetOf(content))
    at = isContainer ? start : start + length.value
  }
  return last === null ? null : (last * scaleNs) / 1e9
}

interface Read {
  readonly value: number
  readonly width: number
  /** All ones: a length that is not known. */
  readonly isOpen: boolean
}

/** A number whose first byte says how many bytes it has. Lengths are read without that mark, ids with it. */
function numberAt(bytes: Buffer, at: number, isLength: boolean): Read | null {
  const first = bytes[at]
  if (first === undefined || first === 0) return null
  const width = Math.clz32(first) - 23
  if (at + width > bytes.length) return null
  const mark = 0x100 >> width
  let value = isLength ? first - mark : first
  let isOpen = first === 2 * mark - 1
  for (let index = 1; index < width; index++) {
    const byte = bytes[at + index] ?? 0
    value = value * 256 + byte
    isOpen &&= byte === 0xff
  }
  return { value, width, isOpen }
}

function wholeOf(content: Buffer): number {
  let value = 0
  for (const byte of content.subarray(0, 8)) value = value * 256 + byte
  return value
}

/** The time of a block after its cluster's: behind the number of its track. */
function offsetOf(content: Buffer): number {
  const track = numberAt(content, 0, true)
  return track === null || content.length < track.width + 2 ? 0 : content.readInt16BE(track.width)
}
