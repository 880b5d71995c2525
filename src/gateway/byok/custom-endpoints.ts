export const customEndpoints = {}
