import type { ViteUserConfig } from 'vitest/config'
import { SlowFirst } from './test/harness/slow-first.ts'

// A plain object with a type: nothing of the bundler is loaded to read it.
export default {
  test: {
    include: ['test/**/*.test.ts'],
    // The programs that they run are installed by scripts of their own (test-clients.mjs, test-conformance.mjs); scripts/test-chaos.mjs takes a quarter of an hour.
    exclude: [
      // Parts of another file, which starts one gateway for all of them.
      'test/**/*.part.test.ts',
      ...(process.env['CLIENTS'] === 'on' ? [] : ['test/clients/**']),
      ...(process.env['CONFORMANCE_FOLDER'] ? [] : ['test/conformance/**']),
      ...(process.env['CHAOS'] === 'on' ? [] : ['test/chaos/**']),
      // A gateway with little memory and its two cores to itself: scripts/test-hostile.mjs.
      ...(process.env['HOSTILE'] === 'on' ? [] : ['test/hostile/**']),
    ],
    globalSetup: ['test/harness/global-setup.ts'],
    sequence: { sequencer: SlowFirst },
    pool: 'forks',
    maxWorkers: 2,
    // Every file imports most of the product; with a fresh module graph for each of three hundred files that took a third of the time.
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
} satisfies ViteUserConfig
