import { bytesOf, hexOf, sha256 } from './signature.ts'

type Hash = Uint8Array<ArrayBuffer>

function joined(mark: number, ...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(1 + parts.reduce((sum, part) => sum + part.length, 0))
  bytes[0] = mark
  let at = 1
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

const nodeOf = (left: Hash, right: Hash): Promise<Hash> => sha256(joined(1, left, right))

/** The root over a list of texts, as RFC 6962 defines it for a log. Only the roots of complete halves are kept, so a day of any length needs little memory. */
export class MerkleRoot {
  readonly #trees: { readonly size: number; readonly hash: Hash }[] = []
  #count = 0

  get count(): number {
    return this.#count
  }

  async add(text: string): Promise<void> {
    this.#count++
    let tree = { size: 1, hash: await sha256(joined(0, bytesOf(text))) }
    for (let last = this.#trees.at(-1); last !== undefined && last.size === tree.size; last = this.#trees.at(-1)) {
      this.#trees.pop()
      tree = { size: last.size * 2, hash: await nodeOf(last.hash, tree.hash) }
    }
    this.#trees.push(tree)
  }

  /** Returns the root of the texts so far, in hexadecimal. */
  async hex(): Promise<string> {
    const hashes = this.#trees.map(({ hash }) => hash)
    let root = hashes.pop() ?? (await sha256(new Uint8Array()))
    for (let left = hashes.pop(); left !== undefined; left = hashes.pop()) root = await nodeOf(left, root)
    return hexOf(root)
  }
}
