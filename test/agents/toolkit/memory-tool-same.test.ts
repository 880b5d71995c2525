import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type MemoryClient, memoryClient } from '../../../src/agents/toolkit/memory-client/memory-client.ts'
import type { MemoryToolCommand } from '../../../src/agents/toolkit/memory-tool/memory-tool-commands.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { memoryToolPair } from './memory-tool-peer.ts'

let app: TestApp
let memory: MemoryClient
let spaces = 0

beforeAll(async () => {
  app = await startApp()
  await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
  memory = memoryClient({ baseUrl: app.baseUrl, credential: app.key })
})
afterAll(() => app.stop())

/** Runs the commands with both tools, on empty memory, and compares the results. */
async function expectSame(commands: readonly MemoryToolCommand[]): Promise<void> {
  spaces++
  const { run, dispose } = await memoryToolPair(memory, `agents/same-${spaces}`)
  try {
    for (const [at, command] of commands.entries()) {
      const { theirs, ours } = await run(command)
      expect({ at, command, ...ours }).toEqual({ at, command, ...theirs })
    }
  } finally {
    dispose()
  }
}

const view = (path: string, range?: readonly number[]): MemoryToolCommand => ({ command: 'view', path, ...(range ? { view_range: range } : {}) })
const create = (path: string, text = 'one\ntwo\nthree'): MemoryToolCommand => ({ command: 'create', path, file_text: text })
const replace = (path: string, old: string, by: string): MemoryToolCommand => ({ command: 'str_replace', path, old_str: old, new_str: by })
const insert = (path: string, line: number, text: string): MemoryToolCommand => ({ command: 'insert', path, insert_line: line, insert_text: text })
const remove = (path: string): MemoryToolCommand => ({ command: 'delete', path })
const rename = (from: string, to: string): MemoryToolCommand => ({ command: 'rename', old_path: from, new_path: to })

const edges: Record<string, readonly MemoryToolCommand[]> = {
  'the root': [
    view('/memories'),
    view('/memories/'),
    create('/memories'),
    remove('/memories'),
    remove('/memories/'),
    rename('/memories', '/memories/a'),
    insert('/memories', 0, 'x'),
    replace('/memories', 'a', 'b'),
    create('/memories/a'),
    rename('/memories/a', '/memories'),
    rename('/memories/', '/memories/a'),
    remove('/memories/x/..'),
  ],
  'paths that lead elsewhere': [
    '/etc/passwd',
    'memories/a',
    '/memories/../a',
    '/memories/..',
    '/memories/a/../../b',
    '/memories/../memories',
    '/memories/../memories/a',
    '/memories/../../memories/a',
    '/memories/../memoriesx/a',
    '/memoriesfoo',
    '/memoriesfoo/../a',
    '',
    '/Memories/a',
  ].flatMap(path => [create(path, path), view(path), rename(path, '/memories/q'), rename('/memories/q', path), remove(path)]),
  'paths in other forms': [
    create('/memories//a.txt'),
    view('/memories/a.txt/'),
    view('/memories/./a.txt'),
    view('/memories/b/../a.txt'),
    create('/memories/d/e/'),
    view('/memories/d/'),
    view('/memories/d//e'),
    remove('/memories/d/'),
  ],
  'what is missing': [
    view('/memories/no'),
    view('/memories/no/where'),
    replace('/memories/no', 'a', 'b'),
    insert('/memories/no', 0, 'a'),
    remove('/memories/no'),
    remove('/memories/no/where'),
    rename('/memories/no', '/memories/yes'),
    rename('/memories/no', '/memories/made/for/it'),
    view('/memories'),
    view('/memories/made'),
    remove('/memories/made/for'),
    view('/memories'),
  ],
  'a file where a folder should be': [
    create('/memories/f'),
    create('/memories/f/a'),
    create('/memories/f/a/b'),
    view('/memories/f/a'),
    view('/memories/f/a/b'),
    remove('/memories/f/a'),
    insert('/memories/f/a', 0, 'x'),
    replace('/memories/f/a', 'x', 'y'),
    rename('/memories/f/a', '/memories/g'),
    rename('/memories/f', '/memories/f/a'),
    rename('/memories/f', '/memories/f'),
    view('/memories'),
  ],
  'a folder where a file should be': [
    create('/memories/d/a'),
    create('/memories/d'),
    insert('/memories/d', 0, 'x'),
    replace('/memories/d', 'x', 'y'),
    view('/memories/d', [1, 2]),
    rename('/memories/d', '/memories/d/b'),
    rename('/memories/d', '/memories/d/c/d'),
    rename('/memories/d/a', '/memories/d'),
    view('/memories'),
  ],
  'create again': [
    create('/memories/a', 'first'),
    create('/memories/a', 'second'),
    view('/memories/a'),
    remove('/memories/a'),
    create('/memories/a', 'third'),
    view('/memories/a'),
  ],
  rename: [
    create('/memories/a', '1'),
    create('/memories/b', '2'),
    rename('/memories/a', '/memories/b'),
    view('/memories/b'),
    rename('/memories/a', '/memories/x/y/a'),
    view('/memories'),
    create('/memories/x/z', '3'),
    rename('/memories/x', '/memories/w'),
    view('/memories/w'),
    view('/memories/w/y/a'),
    rename('/memories/w/y', '/memories/b'),
    rename('/memories/w/y/a', '/memories/a'),
    view('/memories/w'),
    rename('/memories/w/y', '/memories/empty'),
    view('/memories'),
  ],
  'delete a folder': [
    create('/memories/d/a'),
    create('/memories/d/e/b'),
    create('/memories/dx'),
    remove('/memories/d'),
    view('/memories'),
    view('/memories/d'),
    remove('/memories/d'),
    create('/memories/d', 'file now'),
    view('/memories/d'),
  ],
  'folders without files stay': [
    create('/memories/p/q/r'),
    remove('/memories/p/q/r'),
    view('/memories'),
    view('/memories/p'),
    view('/memories/p/q'),
    create('/memories/p'),
    create('/memories/p/q'),
    rename('/memories/p/q', '/memories/s'),
    view('/memories'),
    remove('/memories/s'),
    remove('/memories/p'),
    view('/memories'),
  ],
  view_range: [
    create('/memories/a', 'l1\nl2\nl3\nl4\n'),
    ...[
      [1, 2],
      [2, 4],
      [0, 1],
      [-5, 2],
      [3, -1],
      [4, 99],
      [9, 12],
      [3, 2],
      [1, -2],
      [2, 0],
      [5, 5],
    ].map(range => view('/memories/a', range)),
    view('/memories/a', []),
  ],
  insert: [
    create('/memories/a', 'l1\nl2'),
    insert('/memories/a', 0, 'top'),
    insert('/memories/a', 3, 'end\n'),
    insert('/memories/a', 2, 'two\nlines\n\n'),
    insert('/memories/a', -1, 'x'),
    insert('/memories/a', 99, 'x'),
    insert('/memories/a', 1.5, 'x'),
    view('/memories/a'),
    create('/memories/e', ''),
    insert('/memories/e', 0, 'a'),
    insert('/memories/e', 2, ''),
    insert('/memories/e', 3, ''),
    view('/memories/e'),
  ],
  str_replace: [
    create('/memories/a', 'aa b\nb\nc\nd\ne\nlast'),
    replace('/memories/a', 'zz', 'y'),
    replace('/memories/a', 'b', 'y'),
    replace('/memories/a', 'a', 'x'),
    replace('/memories/a', 'last', 'two\nlines'),
    replace('/memories/a', 'c\nd', 'x'),
    replace('/memories/a', 'd', "$& $1 $$ $` $'"),
    replace('/memories/a', '', 'x'),
    view('/memories/a'),
    create('/memories/one', 'x'),
    replace('/memories/one', '', 'y'),
    replace('/memories/one', 'yx', ''),
    view('/memories/one'),
    view('/memories'),
  ],
  'unicode, carriage returns, empty files': [
    create('/memories/ನಾನು 😀.md', 'ನಮಸ್ಕಾರ\r\n😀 e\u0301\r\nend\r\n'),
    view('/memories/ನಾನು 😀.md'),
    replace('/memories/ನಾನು 😀.md', '😀', '👩‍👩‍👧'),
    insert('/memories/ನಾನು 😀.md', 1, 'é\r'),
    view('/memories/ನಾನು 😀.md'),
    create('/memories/empty', ''),
    view('/memories/empty'),
    view('/memories/empty', [1, 1]),
    create('/memories/bom', '\ufeffx'),
    insert('/memories/bom', 1, 'y'),
    view('/memories/bom'),
    create('/memories/lone', 'a\ud800b'),
    view('/memories/lone'),
    create('/memories/nul', 'a\u0000b'),
    view('/memories/nul'),
    view('/memories'),
  ],
  listings: [
    create('/memories/b'),
    create('/memories/B'),
    create('/memories/a/2'),
    create('/memories/a-b'),
    create('/memories/a.b'),
    create('/memories/ä'),
    create('/memories/10'),
    create('/memories/9'),
    create('/memories/.hidden'),
    create('/memories/.secret/x'),
    create('/memories/node_modules/m/i.js'),
    create('/memories/a/.h'),
    create('/memories/a/d/deep/deeper'),
    create('/memories/a/d/f'),
    create('/memories/K', 'x'.repeat(1024)),
    create('/memories/K1', 'x'.repeat(1025)),
    create('/memories/K15', 'x'.repeat(1536)),
    create('/memories/B1023', 'x'.repeat(1023)),
    create('/memories/M', 'x'.repeat(1024 * 1024)),
    create('/memories/U', 'ü'),
    view('/memories'),
    view('/memories/'),
    view('/memories/a'),
    view('/memories/a/d'),
    view('/memories/.secret'),
    view('/memories/.hidden'),
    view('/memories/node_modules'),
  ],
}

test.each(Object.keys(edges))('TOOL-04 the memory tool answers like the tool of the SDK: %s', async name => {
  await expectSame(edges[name] ?? [])
})

const name = fc.constantFrom('a', 'b', 'c.md', '.h', 'ü')
const path = fc.oneof(
  { weight: 8, arbitrary: fc.array(name, { minLength: 1, maxLength: 3 }).map(names => `/memories/${names.join('/')}`) },
  { weight: 1, arbitrary: fc.constantFrom('/memories', '/memories/', '/memories/a/', '/memories/a/../b', '/memories/../a') },
)
const text = fc.array(fc.constantFrom('x', 'y', 'xy', '', '\n', '\r\n', 'ü '), { maxLength: 6 }).map(parts => parts.join(''))
const line = fc.integer({ min: -2, max: 7 })
const command: fc.Arbitrary<MemoryToolCommand> = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(path, text).map(([at, content]) => create(at, content)) },
  { weight: 3, arbitrary: fc.tuple(path, fc.option(fc.tuple(line, line), { nil: undefined })).map(([at, range]) => view(at, range)) },
  { weight: 2, arbitrary: fc.tuple(path, fc.constantFrom('x', 'y', 'xy', '', 'ü'), text).map(([at, old, by]) => replace(at, old, by)) },
  { weight: 2, arbitrary: fc.tuple(path, line, text).map(([at, after, more]) => insert(at, after, more)) },
  { weight: 2, arbitrary: path.map(remove) },
  { weight: 3, arbitrary: fc.tuple(path, path).map(([from, to]) => rename(from, to)) },
)

test('TOOL-04 the memory tool answers like the tool of the SDK for random sequences of commands', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 10, maxLength: 30 }), commands => expectSame([...commands, view('/memories')])),
    { numRuns: Number(process.env['MEMORY_TOOL_RUNS'] ?? propertyRuns(8)) },
  )
})
