/** Describes the machine and the code of a run. */
import { spawnSync } from 'node:child_process'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { root } from '../scripts/paths.mjs'

/** Returns processor, cores, load, Node version and commit. The commit has a mark when files differ from it. A value that cannot be found is null. */
export function machine() {
  const git = args => {
    const run = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
    return run.status === 0 ? run.stdout.trim() : null
  }
  const commit = git(['rev-parse', '--short', 'HEAD'])
  const isChanged = (git(['status', '--porcelain', '--', 'src', 'package-lock.json']) ?? '') !== ''
  return {
    cpu: cpus()[0]?.model.trim() ?? null,
    cores: availableParallelism(),
    platform: process.platform,
    node: process.versions.node,
    commit: commit === null ? null : `${commit}${isChanged ? ' with changes' : ''}`,
    loadAverage: loadavg()[0],
  }
}
