/** Returns the path of the checkout, runs the main function of a script, and runs child processes. */
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Runs `main` when the module at `url` is the program and not an import of another script. */
export function runAsMain(url, main) {
  if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(url)) main()
}

/**
 * Runs node with `args` on this terminal, and passes SIGINT, SIGTERM and SIGHUP on. Resolves with the child's exit code (128 + n after signal n). Ctrl-C in
 * a terminal is not passed on, because the terminal sends it to both processes and a second signal would stop the child immediately.
 */
export function runNode(args, options = {}) {
  return new Promise((done, failed) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit', ...options })
    const onInterrupt = () => {
      if (!process.stdin.isTTY) child.kill('SIGINT')
    }
    const onTerminate = () => child.kill('SIGTERM')
    const onHangUp = () => child.kill('SIGHUP')
    process.on('SIGINT', onInterrupt)
    process.on('SIGTERM', onTerminate)
    process.on('SIGHUP', onHangUp)
    child.once('error', failed)
    child.once('exit', (code, signal) => {
      process.off('SIGINT', onInterrupt)
      process.off('SIGTERM', onTerminate)
      process.off('SIGHUP', onHangUp)
      done(code ?? 128 + (constants.signals[signal] ?? 0))
    })
  })
}
