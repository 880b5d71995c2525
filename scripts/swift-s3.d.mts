export interface Swift {
  readonly endpoint: string
  readonly hostPort: string
  readonly accessKey: string
  readonly secretKey: string
  readonly region: string
  stop(): Promise<void>
}
export function isSwiftInstalled(): boolean
export function startSwift(folder: string): Promise<Swift>
