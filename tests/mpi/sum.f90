! SPDX-FileCopyrightText: 2026 The netfold authors
! SPDX-License-Identifier: Apache-2.0

! The number of ranks as sums, and the mismatch that only the network finds: an argument makes rank 1 call with another count.
program sum
    use mpi_f08
    implicit none
    integer :: rank, ranks, count
    real(8) :: ones(4), sums(4)
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    ones = 1
    call MPI_Allreduce(ones, sums, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, ones, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0 .and. all(sums == ranks) .and. all(ones == ranks)) print '(a)', 'good'
    if (command_argument_count() > 0) then
        count = merge(3, 4, rank == 1)
        call MPI_Allreduce(ones, sums, count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    end if
    call MPI_Finalize()
end program
