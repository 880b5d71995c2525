/** The samples of a track of MP4 or 3GP: the tables state where each is in the file and how long it is. A decoder reads exactly these bytes. */

/** The tables of a track. A missing one is null. */
export interface SampleTables {
  /** `stsz`: the size of each sample. */
  sizes: Buffer | null
  /** `stsc`: how many samples the chunks have. */
  perChunk: Buffer | null
  /** `stco` or `co64`: where the chunks begin. */
  offsets: Buffer | null
  isWide: boolean
}

/** Notes a box that is one of the tables. */
export function readTable(tables: SampleTables, type: string, content: Buffer): void {
  if (content.length < 8) return
  if (type === 'stsz') tables.sizes = content
  else if (type === 'stsc') tables.perChunk = content
  else if (type === 'stco' || type === 'co64') {
    tables.offsets = content
    tables.isWide = type === 'co64'
  }
}

/**
 * Yields the samples of a track in the order of the tables, each to the end of the file at most. Yields null and ends when the samples together are
 * longer than the file, because only samples that overlap are.
 */
export function* samplesOf(file: Buffer, { sizes, perChunk, offsets, isWide }: SampleTables): Generator<Buffer | null> {
  if (sizes === null || perChunk === null || offsets === null || sizes.length < 12) return
  const same = sizes.readUInt32BE(4)
  const samples = same > 0 ? sizes.readUInt32BE(8) : Math.min(sizes.readUInt32BE(8), Math.floor((sizes.length - 12) / 4))
  const width = isWide ? 8 : 4
  const chunks = Math.min(offsets.readUInt32BE(4), Math.floor((offsets.length - 8) / width))
  const runs = Math.min(perChunk.readUInt32BE(4), Math.floor((perChunk.length - 8) / 12))
  let run = 0
  let sample = 0
  let leftBytes = file.length
  for (let chunk = 1; chunk <= chunks && runs > 0; chunk++) {
    while (run + 1 < runs && perChunk.readUInt32BE(8 + (run + 1) * 12) <= chunk) run++
    const at = 8 + (chunk - 1) * width
    let from = isWide ? Number(offsets.readBigUInt64BE(at)) : offsets.readUInt32BE(at)
    for (let inChunk = perChunk.readUInt32BE(12 + run * 12); inChunk > 0 && sample < samples; inChunk--) {
      const length = same > 0 ? same : sizes.readUInt32BE(12 + sample * 4)
      sample++
      const bytes = file.subarray(from, from + length)
      leftBytes -= bytes.length
      if (leftBytes < 0) {
        yield null
        return
      }
      yield bytes
      from += length
    }
  }
}
