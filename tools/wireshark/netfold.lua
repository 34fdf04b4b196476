-- SPDX-FileCopyrightText: 2026 The netfold authors
-- SPDX-License-Identifier: Apache-2.0

-- Wireshark dissector for netfold (docs/protocol.md, section 2). Use it once with
--   wireshark -X lua_script:tools/wireshark/netfold.lua
-- or copy it into the personal Lua plugins folder (Help > About Wireshark > Folders).
-- Of RoCE (docs/roce.md) it shows the lanes of SENDs of 64 and 256 of them, behind the headers that Wireshark knows.

local netfold = Proto("netfold", "netfold gradient aggregation")

local PORTS = "61440-61695"
local VERSION = 1
local HEADER = 16
local KINDS = { [0] = "GRADIENT", [1] = "RESULT", [2] = "READ", [3] = "RESET" }

local SENDS = { [0] = "SEND first", [1] = "SEND middle", [2] = "SEND last", [4] = "SEND only" }

local f = {
    version    = ProtoField.uint8("netfold.version", "Version", base.DEC, nil, 0xF0),
    kind       = ProtoField.uint8("netfold.kind", "Kind", base.DEC, KINDS, 0x0F),
    overflow   = ProtoField.bool("netfold.overflow", "Overflow", 8, nil, 0x80),
    congestion = ProtoField.bool("netfold.congestion", "Congestion", 8, nil, 0x40),
    quorum     = ProtoField.bool("netfold.quorum", "Of a tree with a quorum", 8, nil, 0x20),
    seal       = ProtoField.bool("netfold.seal", "A deadline is over, or it was late", 8, nil, 0x10),
    lapped     = ProtoField.bool("netfold.lapped", "The slot has moved on", 8, nil, 0x08),
    floats     = ProtoField.bool("netfold.floats", "The lanes are floats", 8, nil, 0x04),
    tree       = ProtoField.uint16("netfold.tree", "Tree"),
    epoch      = ProtoField.uint32("netfold.epoch", "Epoch", base.DEC, nil, 0xFFF00000),
    round      = ProtoField.uint32("netfold.round", "Round", base.DEC, nil, 0x000FFFFF),
    slot       = ProtoField.uint16("netfold.slot", "Slot"),
    child      = ProtoField.uint16("netfold.child", "Child"),
    exponent   = ProtoField.uint8("netfold.exponent", "Exponent"),
    roce       = ProtoField.bool("netfold.roce", "Says what RoCE said", 8, nil, 0x80),
    ack        = ProtoField.bool("netfold.roce.ack_request", "Ack request", 8, nil, 0x40),
    solicited  = ProtoField.bool("netfold.roce.solicited", "Solicited event", 8, nil, 0x20),
    opcode     = ProtoField.uint8("netfold.roce.opcode", "Opcode", base.DEC, SENDS, 0x1F),
    count      = ProtoField.uint8("netfold.count", "Contributions", base.DEC, nil, 0x7F),
    lanes      = ProtoField.uint16("netfold.lanes", "Lanes"),
    lane       = ProtoField.int32("netfold.lane", "Lane"),
    float_lane = ProtoField.float("netfold.float_lane", "Lane"),
}
netfold.fields = f

local e = {
    version = ProtoExpert.new("netfold.version.wrong", "This is not version 1", expert.group.MALFORMED, expert.severity.ERROR),
    kind    = ProtoExpert.new("netfold.kind.unknown", "No such kind", expert.group.MALFORMED, expert.severity.ERROR),
    length  = ProtoExpert.new("netfold.lanes.wrong", "The length is not 16 + 4 * lanes", expert.group.MALFORMED, expert.severity.ERROR),
    cut     = ProtoExpert.new("netfold.cut", "The header is cut short", expert.group.MALFORMED, expert.severity.ERROR),
    rail    = ProtoExpert.new("netfold.overflow.set", "The lanes are not a sum", expert.group.SEQUENCE, expert.severity.NOTE),
    mark    = ProtoExpert.new("netfold.congestion.set", "A queue on the way was above its threshold", expert.group.SEQUENCE, expert.severity.NOTE),
}
netfold.experts = { e.version, e.kind, e.length, e.cut, e.rail, e.mark }

local function header(buffer, tree)
    tree:add(f.version, buffer(0, 1))
    tree:add(f.kind, buffer(0, 1))
    tree:add(f.overflow, buffer(1, 1))
    tree:add(f.congestion, buffer(1, 1))
    tree:add(f.quorum, buffer(1, 1))
    tree:add(f.seal, buffer(1, 1))
    tree:add(f.lapped, buffer(1, 1))
    tree:add(f.floats, buffer(1, 1))
    tree:add(f.tree, buffer(2, 2))
    tree:add(f.epoch, buffer(4, 4))
    tree:add(f.round, buffer(4, 4))
    tree:add(f.slot, buffer(8, 2))
    tree:add(f.child, buffer(10, 2))
    tree:add(f.exponent, buffer(12, 1))
    if buffer(13, 1):uint() >= 0x80 then
        for _, field in ipairs({ f.roce, f.ack, f.solicited, f.opcode }) do tree:add(field, buffer(13, 1)) end
    else
        tree:add(f.count, buffer(13, 1))
    end
    tree:add(f.lanes, buffer(14, 2))
end

local function lanes(buffer, tree, at, count, field)
    local list = tree:add(buffer(at, 4 * count), string.format("Lanes (%d)", count))
    for i = 0, count - 1 do
        list:add(field, buffer(at + 4 * i, 4)):prepend_text(string.format("[%d] ", i))
    end
end

local function judge(buffer, tree)
    local first, flags = buffer(0, 1):uint(), buffer(1, 1):uint()
    if math.floor(first / 16) ~= VERSION then tree:add_proto_expert_info(e.version) end
    if KINDS[first % 16] == nil then tree:add_proto_expert_info(e.kind) end
    if buffer:len() ~= HEADER + 4 * buffer(14, 2):uint() then tree:add_proto_expert_info(e.length) end
    if flags >= 0x80 then tree:add_proto_expert_info(e.rail) end
    if flags % 0x80 >= 0x40 then tree:add_proto_expert_info(e.mark) end
end

function netfold.dissector(buffer, pinfo, root)
    pinfo.cols.protocol = "netfold"
    local tree = root:add(netfold, buffer())
    if buffer:len() < HEADER then
        tree:add_proto_expert_info(e.cut)
        pinfo.cols.info = "header cut short"
        return
    end
    header(buffer, tree)
    local there = math.floor((buffer:len() - HEADER) / 4)
    local field = buffer(1, 1):uint() % 8 >= 4 and f.float_lane or f.lane
    lanes(buffer, tree, HEADER, math.min(buffer(14, 2):uint(), there), field)
    judge(buffer, tree)
    local tag = buffer(4, 4):uint()
    pinfo.cols.info = string.format("%s tree=%d epoch=%d round=%d slot=%d child=%d",
        KINDS[buffer(0, 1):uint() % 16] or "unknown kind", buffer(2, 2):uint(),
        math.floor(tag / 0x100000), tag % 0x100000, buffer(8, 2):uint(), buffer(10, 2):uint())
end

DissectorTable.get("udp.port"):add(PORTS, netfold)

-- What a SEND carries, if it is of a packet's size.
netfold:register_heuristic("infiniband.payload", function(buffer, pinfo, root)
    if buffer:len() ~= 4 * 64 and buffer:len() ~= 4 * 256 then return false end
    lanes(buffer, root:add(netfold, buffer(), "netfold lanes in RoCE"), 0, buffer:len() / 4, f.lane)
    return true
end)
