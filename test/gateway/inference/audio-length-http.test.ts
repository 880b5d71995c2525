/** The length by which a transcription is charged when the provider reports none. */
import { expect, test } from 'vitest'
import { amrCafOf, amrOf, oggOpusOf, opusMp4Of, threeGpOf, wideThreeGpOf } from '../../harness/recordings.ts'
import { usageRows } from '../../harness/usage-rows.ts'
import { audioSuite, perSecondUinr } from './audio-suite.ts'

const { app, postForm } = audioSuite()

const transcribe = (file: Buffer) =>
  postForm([
    ['model', 'test-listen'],
    ['response_format', 'text'],
    ['file', new Blob([new Uint8Array(file)])],
  ])
const textReplies = (count: number) => app().alpha.script(Array.from({ length: count }, () => ({ headers: { 'content-type': 'text/plain' }, body: 'words' })))

test('each of forty concurrent recordings is charged by its measured length or refused', async () => {
  const seconds = 1800
  const file = oggOpusOf(seconds)
  textReplies(40)
  const replies = await Promise.all(Array.from({ length: 40 }, () => transcribe(file)))
  const served = replies.filter(({ status }) => status === 200)
  for (const refused of replies.filter(({ status }) => status !== 200)) {
    expect([refused.status, refused.json.error.code]).toEqual([503, 'temporarily_unavailable'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  expect(served.length).toBeGreaterThan(20)
  const rows = await usageRows(app(), served.length)
  for (const row of rows) expect([row.audioSeconds, row.costUinr]).toEqual([seconds, BigInt(seconds) * perSecondUinr])
})

test('five minutes of AMR are charged as five minutes of audio', async () => {
  for (const isWide of [false, true]) {
    textReplies(1)
    expect((await transcribe(amrOf(300, isWide))).status).toBe(200)
    const [row] = await usageRows(app())
    expect([row?.audioSeconds, row?.costUinr, row?.estimated]).toEqual([300, 300n * perSecondUinr, true])
  }
})

test.each([
  ['3GP with AMR', threeGpOf],
  ['3GP with wide AMR', wideThreeGpOf],
  ['MP4 with Opus', opusMp4Of],
  ['CAF with AMR', amrCafOf],
] as const)('five minutes of %s are charged as five minutes, whatever their header says', async (_, made) => {
  textReplies(1)
  expect((await transcribe(made(300))).status).toBe(200)
  const [row] = await usageRows(app())
  expect([row?.audioSeconds, row?.costUinr]).toEqual([300, 300n * perSecondUinr])
})
