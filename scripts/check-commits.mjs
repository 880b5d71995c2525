/**
 * Checks that every commit after the one that added this file has a subject `area: verb object` of at most 72 characters and a body that says why. In a
 * checkout without a history, such as an archive, the check passes.
 */
import { spawnSync } from 'node:child_process'
import { root, runAsMain } from './paths.mjs'

const subjectMaxChars = 72
const subjectShape = /^[a-z0-9][a-z0-9 ,./-]*: [a-z]\S* \S.*[^.\s]$/

/** Returns what is wrong with a commit message. Returns null when nothing is wrong. */
export function messageFault(message) {
  const [subject = '', blank = '', ...body] = message.trimEnd().split('\n')
  if (/^Merge /.test(subject)) return null
  if (subject.length > subjectMaxChars) return `the subject has ${subject.length} characters; ${subjectMaxChars} is the limit`
  if (!subjectShape.test(subject)) return 'the subject is not of the form "area: verb object"'
  if (blank !== '' || body.join('').trim() === '') return 'a body that says why is missing; it follows an empty line'
  return null
}

const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })

/** Returns one line of text for each commit whose message breaks the format. */
export function badCommits() {
  const first = git('log', '--diff-filter=A', '--format=%H', '--', 'scripts/check-commits.mjs')
  const since = first.stdout?.trim().split('\n').at(-1)
  if (first.status !== 0 || !since) return []
  const { stdout } = git('log', '--no-merges', '--format=%h%x00%B%x01', `${since}..HEAD`)
  return stdout
    .split('\u0001')
    .map(entry => entry.trimStart())
    .filter(entry => entry !== '')
    .flatMap(entry => {
      const [hash, message] = entry.split('\u0000')
      const fault = messageFault(message)
      return fault === null ? [] : [`${hash} ${message.split('\n')[0]}: ${fault}`]
    })
}

runAsMain(import.meta.url, () => {
  const found = badCommits()
  for (const line of found) console.log(line)
  process.exitCode = found.length === 0 ? 0 : 1
})
