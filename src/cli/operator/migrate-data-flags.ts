/** The flags of `brigade migrate-data`, as they were typed. */
export interface MoveFlags {
  readonly from?: string
  readonly to?: string
  readonly bucket?: string
  readonly endpoint?: string
  readonly region?: string
  readonly accessKey?: string
  readonly secretKeyFile?: string
  readonly keepFolders?: boolean
  readonly json?: boolean
}
