import { createHash } from 'node:crypto'

const leafMark = Buffer.from([0])
const nodeMark = Buffer.from([1])

/**
 * The root over a list of texts, as RFC 6962 defines it for a log. The texts arrive one after the other, and only the roots of complete halves are kept. So
 * a list of any length needs a few hundred bytes.
 */
export class MerkleRoot {
  /** The roots of complete trees, the largest first. */
  readonly #trees: { readonly size: number; readonly hash: Buffer }[] = []
  #count = 0

  get count(): number {
    return this.#count
  }

  add(text: string): void {
    this.#count++
    let tree: { readonly size: number; readonly hash: Buffer } = { size: 1, hash: createHash('sha256').update(leafMark).update(text).digest() }
    for (let last = this.#trees.at(-1); last !== undefined && last.size === tree.size; last = this.#trees.at(-1)) {
      this.#trees.pop()
      tree = { size: last.size * 2, hash: nodeOf(last.hash, tree.hash) }
    }
    this.#trees.push(tree)
  }

  /** Returns the root of the texts so far, in hexadecimal. */
  hex(): string {
    const hashes = this.#trees.map(({ hash }) => hash)
    const last = hashes.pop()
    if (last === undefined) return createHash('sha256').digest('hex')
    return hashes.reduceRight((right, left) => nodeOf(left, right), last).toString('hex')
  }
}

const nodeOf = (left: Buffer, right: Buffer): Buffer => createHash('sha256').update(nodeMark).update(left).update(right).digest()
