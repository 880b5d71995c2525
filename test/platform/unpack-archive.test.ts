/** The reader of the archive from which a first start makes its database. The start itself is in db-embedded.test.ts. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'
import { unpackArchive } from '../../src/platform/db/embedded/unpack-archive.ts'

const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-unpack-'))
  folders.push(folder)
  return folder
}

/** Returns an entry of a tar archive. */
function entry(name: string, content = '', { type = '0', size = content.length, prefix = '' } = {}): Buffer {
  const head = Buffer.alloc(512)
  head.write(name)
  head.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  head.write(type, 156)
  head.write(prefix, 345)
  return Buffer.concat([head, Buffer.from(content), Buffer.alloc((512 - (content.length % 512)) % 512)])
}
const end = Buffer.alloc(1024)

test.each(['plain', 'compressed'])('a %s archive becomes files and folders that only their owner can read', async kind => {
  const long = 'x'.repeat(1500)
  const archive = Buffer.concat([
    entry('/', '', { type: '5' }),
    entry('/base', '', { type: '5' }),
    entry('/base/1', long),
    entry('empty', ''),
    entry('/global/2', 'two'),
    entry('3', 'three', { prefix: 'far/away' }),
    end,
  ])
  const folder = newFolder()
  await unpackArchive(kind === 'plain' ? archive : gzipSync(archive), folder)
  expect(['base/1', 'empty', 'global/2', 'far/away/3'].map(path => readFileSync(join(folder, path), 'utf8'))).toEqual([long, '', 'two', 'three'])
  expect([statSync(join(folder, 'global')).mode & 0o777, statSync(join(folder, 'global/2')).mode & 0o777]).toEqual([0o700, 0o600])
})

test('a path outside of the folder, a link, a wrong size and an incomplete archive are refused', async () => {
  const folder = newFolder()
  const within = join(folder, 'within')
  for (const archive of [entry('../outside', 'x'), entry('/base/../../outside', 'x'), entry('outside', 'x', { prefix: '..' })])
    await expect(unpackArchive(Buffer.concat([archive, end]), within)).rejects.toThrow('damaged')
  expect(existsSync(join(folder, 'outside'))).toBe(false)
  await expect(unpackArchive(Buffer.concat([entry('link', '', { type: '2' }), end]), within)).rejects.toThrow('type 2')
  for (const archive of [
    entry('1', 'x'),
    Buffer.concat([entry('1', 'x'), end.subarray(0, 100)]),
    entry('1', 'x').subarray(0, 512),
    entry('1', 'x', { size: 5000 }),
    entry('1', 'x', { size: Number.NaN }),
  ])
    await expect(unpackArchive(archive, within)).rejects.toThrow('damaged')
  await expect(unpackArchive(gzipSync(entry('1', 'x')).subarray(0, 20), within)).rejects.toThrow()
})
