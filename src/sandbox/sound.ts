/** The number of samples per second of all sounds in the sandbox. They have one channel and 16 bits, little-endian. */
const pcmRate = 24_000
/** The duration of one character. */
const charMs = 60
const loudness = 6000

/** Returns a tone for each character. The character sets the pitch, and white space is silence. The same text gives the same bytes. */
export function spokenSamples(text: string, speed: number): Buffer {
  const samples = Math.round((pcmRate * charMs) / 1000 / speed)
  const tones = new Map<number, Buffer>()
  const silence = Buffer.alloc(samples * 2)
  return Buffer.concat(
    Array.from(text, char => {
      if (/\s/.test(char)) return silence
      const hertz = 200 + ((char.codePointAt(0) ?? 0) % 80) * 10
      const tone = tones.get(hertz) ?? toneOf(hertz, samples)
      tones.set(hertz, tone)
      return tone
    }),
  )
}

/** Returns a tone that fades in and out, so that it does not click. */
function toneOf(hertz: number, samples: number): Buffer {
  const tone = Buffer.alloc(samples * 2)
  for (let at = 0; at < samples; at++) {
    const fade = Math.min(1, Math.min(at, samples - at) / 100)
    tone.writeInt16LE(Math.round(loudness * fade * Math.sin((2 * Math.PI * hertz * at) / pcmRate)), at * 2)
  }
  return tone
}

/** Returns the 44-byte header for this number of sample bytes. */
export function wavHeader(sampleBytes: number): Buffer {
  const head = Buffer.alloc(44)
  head.write('RIFF', 0, 'latin1')
  head.writeUInt32LE(36 + sampleBytes, 4)
  head.write('WAVEfmt ', 8, 'latin1')
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(pcmRate, 24)
  head.writeUInt32LE(pcmRate * 2, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write('data', 36, 'latin1')
  head.writeUInt32LE(sampleBytes, 40)
  return head
}

/** Returns the length of a WAV file in seconds, from the number of its bytes and the rate in its header. Returns null for any other file. */
export function wavSeconds(bytes: Buffer): number | null {
  if (bytes.length < 44 || bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.toString('latin1', 8, 16) !== 'WAVEfmt ') return null
  const bytesPerSecond = bytes.readUInt32LE(28)
  return bytesPerSecond === 0 ? null : (bytes.length - 44) / bytesPerSecond
}
