import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { CommandError, wrongUsage } from '../command-error.ts'

/** Asks a person at the terminal. Questions go to stderr, because a program may read stdout. */
export interface Questions {
  /** Returns the answer without spaces around it, or `fallback` for an empty answer. Throws CommandError when the person leaves. */
  ask(question: string, fallback?: string): Promise<string>
  /** Asks until the person types yes or no. Enter means `fallback`. */
  confirm(question: string, fallback: boolean): Promise<boolean>
  close(): void
}

/** Maximum number of times that a question is repeated after an answer that it does not understand. */
const triesMax = 5

/** Returns whether a person can answer questions. */
export function isAnswered(): boolean {
  return process.stdin.isTTY === true
}

/** Opens the terminal for questions. Ctrl-C and Ctrl-D end the command with `left` as its message. */
export function openQuestions(left: string): Questions {
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  let leave: (error: CommandError) => void = () => undefined
  const gone = new Promise<never>((_resolve, reject) => {
    leave = reject
  })
  // Nobody waits for an answer between two questions.
  gone.catch(() => undefined)
  prompt.once('close', () => leave(new CommandError(left)))
  const ask = async (question: string, fallback = ''): Promise<string> => {
    const answer = (await Promise.race([prompt.question(question), gone])).trim()
    return answer === '' ? fallback : answer
  }
  return {
    ask,
    async confirm(question, fallback) {
      for (let tries = 0; tries < triesMax; tries++) {
        const answer = await ask(`${question} ${fallback ? '[Y/n]' : '[y/N]'} `, fallback ? 'y' : 'n')
        if (/^y(es)?$/i.test(answer)) return true
        if (/^no?$/i.test(answer)) return false
      }
      throw new CommandError(left)
    },
    close: () => prompt.close(),
  }
}

/** Asks for a secret, which the terminal does not show. Throws CommandError (2) when no person can answer, with `otherwise` as the way to give it. */
export async function askSecret(question: string, otherwise: string): Promise<string> {
  if (!isAnswered()) throw wrongUsage(`${question} Nobody is there to ask: ${otherwise}.`)
  let isMuted = false
  const output = new Writable({
    write(chunk, _encoding, done) {
      if (!isMuted) process.stderr.write(chunk)
      done()
    },
  })
  const prompt = createInterface({ input: process.stdin, output, terminal: true })
  try {
    const left = new Promise<never>((_resolve, reject) => {
      prompt.once('close', () => reject(new CommandError('nothing was changed.')))
    })
    const answered = prompt.question(`${question} `)
    isMuted = true
    return (await Promise.race([answered, left])).trim()
  } finally {
    prompt.close()
    process.stderr.write('\n')
  }
}
