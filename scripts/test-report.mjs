/**
 * Reads vitest's JSON reports for .ci/run. `counts <report>` prints the three numbers "passed failed skipped". A file with an error outside its tests
 * counts as one failed test. `failed <report>` prints the files with failures, relative to this folder, one on each line. `names <report>` prints the full
 * names of the failures, one on each line.
 */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

const [what, file] = process.argv.slice(2)
const report = JSON.parse(readFileSync(file, 'utf8'))
const failedTests = suite => suite.assertionResults.filter(test => test.status === 'failed')
const broken = report.testResults.filter(suite => suite.status === 'failed' && failedTests(suite).length === 0)
const failing = report.testResults.filter(suite => suite.status === 'failed')

const answers = {
  counts: () => `${report.numPassedTests} ${report.numFailedTests + broken.length} ${report.numPendingTests + (report.numTodoTests ?? 0)}`,
  failed: () => failing.map(suite => relative('.', suite.name)).join('\n'),
  names: () =>
    failing
      .flatMap(suite => {
        const file = relative('.', suite.name)
        const tests = failedTests(suite).map(test => `${file} > ${test.fullName}`)
        return tests.length > 0 ? tests : [file]
      })
      .join('\n'),
}
console.log(answers[what]())
